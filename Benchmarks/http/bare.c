// An epoll loop that answers every read with the same bytes in one write: the upper bound. Usage: bare PORT FILE
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **arguments) {
    static char reply[1 << 20], buffer[1 << 16];
    if (count != 3) return 2;
    FILE *file = fopen(arguments[2], "rb");
    if (!file) return 1;
    size_t length = fread(reply, 1, sizeof reply, file);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) return 1;
    int poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[512];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(poller, ready, 512, -1);
        for (int i = 0; i < n; i++) {
            int descriptor = ready[i].data.fd;
            if (descriptor == listener) {
                event.data.fd = accept4(listener, 0, 0, SOCK_NONBLOCK);
                setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                epoll_ctl(poller, EPOLL_CTL_ADD, event.data.fd, &event);
            } else if (recv(descriptor, buffer, sizeof buffer, 0) <= 0) {
                close(descriptor);
            } else {
                send(descriptor, reply, length, MSG_NOSIGNAL);
            }
        }
    }
}
