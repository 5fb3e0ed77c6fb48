package epoll

import "golang.org/x/sys/unix"

// ReserveFiles makes room for n open files in the kernel's table of the process, unless it
// may not have so many. The kernel doubles the table when a file finds no place. In a
// process with threads it then waits until no processor looks at the old table
// (expand_fdtable in fs/file.c, Linux 6.18): 4 to 20 ms, in which a loop that accepts
// serves nobody. ReserveFiles waits once. A place takes 8 bytes of the kernel's memory.
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
