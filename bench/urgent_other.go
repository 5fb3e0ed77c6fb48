//go:build !linux

package bench

import "os/exec"

func startUrgent(cmd *exec.Cmd) error { return cmd.Start() }

func urgent() bool { return false }
