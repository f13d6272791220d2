const url = document.currentScript.src.replace(/[^/]*$/, 'openapi.json');
SwaggerUIBundle({ url, dom_id: '#viewer', deepLinking: true });
