/**
 * A service that behaves, but for one route.
 *
 * Passes every request on to a simulator, except those that `is` picks: they
 * get the bare socket and what a hostile server would do with it.
 */

import http from "node:http";

/** `is(method, path)`; `attack(socket)` writes to the socket for as long as it likes. */
export async function hostile(t, service, is, attack) {
  const target = new URL(service.url);
  const server = http.createServer((request, response) => {
    if (is(request.method, request.url.split("?")[0])) {
      request.resume();
      response.socket.on("error", () => {});
      attack(response.socket);
      return;
    }
    const { method, headers, url: path } = request;
    const { hostname: host, port } = target;
    const forward = http.request({ host, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    forward.on("error", () => response.destroy());
    response.on("close", () => forward.destroy());
    request.pipe(forward);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Writes `first`, then a piece again and again, as fast as it is read, until the other side leaves. */
export function endless(socket, piece, first = "") {
  socket.write(first);
  const write = () => {
    while (!socket.destroyed && socket.writable) if (!socket.write(piece)) return;
  };
  socket.on("drain", write);
  write();
}
