// What Swift's Glibc module leaves out. Declarations only; nothing on other systems.
#pragma once
#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
int accept4(int, struct sockaddr *, socklen_t *, int);
#endif
