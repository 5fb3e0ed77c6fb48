// Package adminsocket locates the Unix socket on which a server serves its admin API to
// commands on the same machine.
package adminsocket

import (
	"io/fs"
	"os"
	"path/filepath"
)

// DefaultPort is the port of an admin address that has none.
const DefaultPort = "11380"

// System is the directory of a service's sockets. It is created by the systemd unit, or
// by a server that root starts. Only tests change it, before they start servers.
var System = "/run/beanpole"

// Paths returns the possible paths of a server's socket, in the order in which the server
// tries them. port is the server's first TCP port, and dir the directory of its journal;
// both can be empty.
func Paths(port, dir string) (paths []string) {
	if port != "" {
		paths = append(paths, filepath.Join(System, port+".sock"))
		if user := os.Getenv("XDG_RUNTIME_DIR"); user != "" {
			paths = append(paths, filepath.Join(user, "beanpole-"+port+".sock"))
		}
	}
	if dir != "" {
		paths = append(paths, filepath.Join(dir, "admin.sock"))
	}
	return paths
}

// Find returns the first of Paths that is a socket, or "" if there is none.
func Find(port, dir string) string {
	for _, path := range Paths(port, dir) {
		if info, err := os.Stat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
			return path
		}
	}
	return ""
}
