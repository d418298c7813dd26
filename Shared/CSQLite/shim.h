#pragma once
#include <sqlite3.h>

#ifdef __linux__
// Declared by glibc for GNU sources only: a file that has no name, for images of databases.
int memfd_create(const char *name, unsigned int flags);
enum { LARDER_MFD_CLOEXEC = 1 };
#endif
