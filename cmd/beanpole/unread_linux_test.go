package main

import "golang.org/x/sys/unix"

// fionread asks how many bytes of a socket are unread.
const fionread = unix.TIOCINQ
