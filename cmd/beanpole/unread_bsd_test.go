//go:build darwin || freebsd

package main

// fionread asks how many bytes of a socket are unread: FIONREAD of
// <sys/filio.h>.
const fionread = 0x4004667f
