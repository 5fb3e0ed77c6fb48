package main

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// fromSource is beanpole, built once for all tests.
var fromSource = sync.OnceValues(func() (string, error) {
	return buildBeanpole(context.Background(), binDir)
})

var binDir string // set by TestMain

var testShape = loadShape{Connections: 3, InFlight: 4, BodySize: 64, Duration: 100 * time.Millisecond}

// TestServers puts the load on each server that is installed, with each
// durability. drive checks every reply and every job.
func TestServers(t *testing.T) {
	beanpole, err := fromSource()
	if err != nil {
		t.Fatal(err)
	}
	p := programs{beanstalkd: "beanstalkd", beanpole: beanpole, redis: "redis-server", nats: "nats-server"}
	for _, d := range durabilities {
		all, err := contenders(d, p, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			t.Run(string(d)+"/"+c.name, func(t *testing.T) {
				if c.absent != "" {
					t.Skip(c.absent)
				}
				res, err := c.run(t.Context(), testShape)
				if err != nil {
					t.Fatal(err)
				}
				if res.Jobs <= 0 || res.P50 <= 0 || res.P99 < res.P50 {
					t.Errorf("%+v", res)
				}
			})
		}
	}
}

// TestCanceled: a run ends when its context does, also in the middle.
func TestCanceled(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	shape := testShape
	shape.Duration = time.Hour
	if res, err := redisContender(inMemory, "redis-server").run(ctx, shape); err == nil {
		t.Errorf("no error but %+v", res)
	}
}

// TestLeftOut: a server that is not installed and one that does not start are
// left out, once each, and the others are run.
func TestLeftOut(t *testing.T) {
	beanpole, err := fromSource()
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	err = mainWith(t.Context(), []string{"-rounds", "2", "-duration", "20ms", "-warmup", "0", "-loads", "2x2", "-log", "memory",
		"-beanpole", beanpole, "-beanstalkd", "/nowhere/beanstalkd", "-redis=false", "-nats", "/nowhere/nats-server"}, &out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"-nats nats-server`", "\n- beanpole ", "## In memory", "\n- beanpole: `beanpole -l 127.0.0.1 -p {port}`\n",
		"| 2 connections, 2 in flight | beanpole | ", "\nbeanstalkd was left out: it is not installed.\n",
		"\nRedis was left out: round 1 of 2 connections, 2 in flight: ", "\nJetStream was left out: it is not installed.\n", differs,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "/nowhere") || strings.Contains(text, binDir) {
		t.Errorf("folders of this machine in\n%s", text)
	}
	if n := strings.Count(progress.String(), "\n"); n != 2 {
		t.Errorf("%d runs, want 2:\n%s", n, progress.String())
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{
		"-rounds 0", "-duration 0s", "-body 15", "-body 65536", "-loads 50", "-loads 0x1", "-log disk", "-log memory,", "surplus",
	} {
		if _, err := parseFlags(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
	opt, err := parseFlags(strings.Fields("-loads 7x3 -log always -body 100 -duration 1s"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := loadShape{Connections: 7, InFlight: 3, BodySize: 100, Warmup: 300 * time.Millisecond, Duration: time.Second}
	if len(opt.shapes) != 1 || opt.shapes[0] != want || len(opt.durabilities) != 1 || opt.durabilities[0] != always {
		t.Errorf("%+v", opt)
	}
}

func TestNATSHasSyncInterval(t *testing.T) {
	for version, want := range map[string]bool{
		"nats-server: v2.9.10": false, "nats-server: v2.10.0": true, "nats-server: v2.15.2": true,
		"nats-server: v3.0.0": true, "nats-server: v1.11.0": false, "": false,
	} {
		if got := natsHasSyncInterval(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestWithoutFolder(t *testing.T) {
	for arg, want := range map[string]string{
		"memory": "memory", "/a/b/nats-server": "nats-server", "-nats=/a/b": "-nats=b", "x/y": "y", "": "",
	} {
		if got := withoutFolder(arg); got != want {
			t.Errorf("%q: %q, want %q", arg, got, want)
		}
	}
}
