package epoll

import "golang.org/x/sys/unix"

// ReserveFiles grows the process's file table in the kernel to n entries, within the
// limit of open files. The kernel doubles a full table. In a process with threads, it
// then waits until no processor uses the old table (expand_fdtable in fs/file.c, Linux
// 6.18). This takes 4 to 20 ms, in which an accepting loop serves no client. ReserveFiles
// causes a single wait. An entry takes 8 bytes of kernel memory.
func ReserveFiles(n int) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if last, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, n-1); err == nil {
		unix.Close(last)
	}
}
