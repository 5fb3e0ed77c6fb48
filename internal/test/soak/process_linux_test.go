package soak

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/beanpole-mq/beanpole/internal/test/exectest"
)

// start starts the program and waits until it is ready. The program inherits the files,
// starting with descriptor 3.
func start(program string, args, env []string, files ...*os.File) (*exectest.Process, error) {
	cmd := exec.Command(program, args...)
	cmd.ExtraFiles = files
	cmd.Env = append(append(os.Environ(), "BEANPOLE_ADMIN_SOCKET=none"), env...)
	srv, err := exectest.Start(cmd)
	if err == nil {
		srv.Log.Drop("level=DEBUG")
		_, err = srv.Await("msg=ready ")
	}
	return srv, err
}

// descriptors returns the numbers of open sockets and of open descriptors of the process.
func descriptors(pid int) (sockets, all int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			all++
			if strings.HasPrefix(to, "socket:") {
				sockets++
			}
		}
	}
	return sockets, all
}

// resident returns the anonymous resident memory of the process in bytes.
func resident(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := bytes.Cut(text, []byte("RssAnon:"))
	fields := strings.Fields(string(after))
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.Atoi(fields[0])
	return kib << 10
}
