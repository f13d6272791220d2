SwaggerUIBundle({ url: '/schema/openapi.json', dom_id: '#viewer', deepLinking: true });
