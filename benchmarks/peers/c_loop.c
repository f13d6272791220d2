/* The least work of a broadcast: one `send` per client, and nothing else. `c_loop PORT` runs it on 127.0.0.1.

It serves the clients of benchmarks/crowd.py only. Their handshakes are equal, they mask with zeros, and each of their
messages is a single frame that arrives in one piece. It sends each text to all clients, the sender included. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CLIENTS 65536
#define HEADERS 8 /* bytes of a client's frame before a text of 126 bytes or more */

static const char handshake[] =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: BACScCJPNqyz+UBoqMH89VmURoA=\r\n\r\n";

static int clients[MAX_CLIENTS]; /* sockets whose handshake is complete */
static int client_count;
static char is_client[MAX_CLIENTS]; /* by descriptor */

static void broadcast(unsigned char *received) {
    int size = received[2] << 8 | received[3];
    unsigned char *frame = received + HEADERS - 4; /* a server's frame has no mask */
    frame[0] = received[0];
    frame[1] = 126;
    frame[2] = size >> 8;
    frame[3] = size & 255;
    for (int each = 0; each < client_count; each++) send(clients[each], frame, 4 + size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void add(int poll, int socket) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};
    epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event);
}

int main(int count, char **arguments) {
    static unsigned char received[65536 + HEADERS];
    struct epoll_event ready[256];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(count > 1 ? atoi(arguments[1]) : 0)};
    int yes = 1, poll = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) return 1;
    add(poll, listener);
    for (;;) {
        int events = epoll_wait(poll, ready, 256, -1);
        for (int event = 0; event < events; event++) {
            int socket = ready[event].data.fd;
            if (socket == listener) {
                int client = accept(listener, NULL, NULL);
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
                is_client[client] = 0;
                add(poll, client);
            } else if (recv(socket, received, sizeof received, 0) <= 0) {
                close(socket);
            } else if (is_client[socket]) {
                broadcast(received);
            } else {
                send(socket, handshake, strlen(handshake), MSG_NOSIGNAL);
                is_client[socket] = 1;
                clients[client_count++] = socket;
            }
        }
    }
}
