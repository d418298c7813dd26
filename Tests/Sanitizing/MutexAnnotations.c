// Tells the thread sanitizer about Synchronization.Mutex, which is preloaded by `Scripts/sanitize.sh`.
//
// The atomic operations of an uncontended lock are inlined into instrumented code. The waiting is in the library, which is not
// instrumented, and in the kernel: without these functions the sanitizer misses every order that a contended lock establishes.

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#define SELF __attribute__((swift_context)) void *self

void __tsan_acquire(void *address);
void __tsan_release(void *address);

// The symbols of `_MutexHandle._lockSlow(UInt32)`, `_tryLockSlow()` and `_unlockSlow()`: `self` is the address of the lock's word.
__attribute__((swiftcall)) void lockSlow(uint32_t thread, SELF) __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
__attribute__((swiftcall)) bool tryLockSlow(SELF) __asm__("$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");
__attribute__((swiftcall)) void unlockSlow(SELF) __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");

typedef __attribute__((swiftcall)) void (*LockSlow)(uint32_t thread, SELF);
typedef __attribute__((swiftcall)) bool (*TryLockSlow)(SELF);
typedef __attribute__((swiftcall)) void (*UnlockSlow)(SELF);

static LockSlow nextLock;
static TryLockSlow nextTryLock;
static UnlockSlow nextUnlock;

__attribute__((constructor)) static void find(void) {
    nextLock = (LockSlow)dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
    nextTryLock = (TryLockSlow)dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");
    nextUnlock = (UnlockSlow)dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
}

__attribute__((swiftcall)) void lockSlow(uint32_t thread, SELF) {
    nextLock(thread, self);
    __tsan_acquire(self);
}

__attribute__((swiftcall)) bool tryLockSlow(SELF) {
    bool locked = nextTryLock(self);
    if (locked) __tsan_acquire(self);
    return locked;
}

__attribute__((swiftcall)) void unlockSlow(SELF) {
    __tsan_release(self);
    nextUnlock(self);
}
