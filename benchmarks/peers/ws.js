// A server on `ws` as its README writes one: each message goes to every client that is open.
const { WebSocketServer, WebSocket } = require("ws");

const server = new WebSocketServer({ host: "127.0.0.1", port: Number(process.argv[2]), perMessageDeflate: false });

server.on("connection", (socket) => {
  socket.on("error", () => {});
  socket.on("message", (data, isBinary) => {
    for (const client of server.clients) {
      if (client.readyState === WebSocket.OPEN) client.send(data, { binary: isBinary });
    }
  });
});
