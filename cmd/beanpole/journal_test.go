package main

import (
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptBeanstalkd starts the real beanstalkd. It passes it a socket, as a service
// manager does, so that clients can connect before it is ready.
func scriptBeanstalkd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: beanstalkd NAME ARG...")
	}
	cmd := newCommand(ts, "beanstalkd")
	files, addrs := sockets(ts, 1)
	inherit(cmd, files)
	new(process).start(ts, args[0], cmd, args[1:])
	ts.Setenv(args[0]+"_addr", addrs[0])
}

func scriptFlip(ts *testscript.TestScript, neg bool, args []string) {
	f, at := fileAnd(ts, neg, args)
	defer f.Close()
	b := make([]byte, 1)
	_, err := f.ReadAt(b, at)
	ts.Check(err)
	b[0] ^= 0xff
	_, err = f.WriteAt(b, at)
	ts.Check(err)
}

func scriptCut(ts *testscript.TestScript, neg bool, args []string) {
	f, n := fileAnd(ts, neg, args)
	defer f.Close()
	info, err := f.Stat()
	ts.Check(err)
	ts.Check(f.Truncate(info.Size() - n))
}

func fileAnd(ts *testscript.TestScript, neg bool, args []string) (*os.File, int64) {
	if neg || len(args) != 2 {
		ts.Fatalf("want a file and a number")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR, 0)
	ts.Check(err)
	return f, n
}
