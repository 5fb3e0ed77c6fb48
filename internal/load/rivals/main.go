package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/beanpole-mq/beanpole/internal/load"
)

// differs is what the figures do not say.
//
//go:embed differs.md
var differs string

// options are what the flags say.
type options struct {
	rounds       int
	durabilities []durability
	shapes       []loadShape
	programs     programs
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := mainWith(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		os.Exit(1)
	}
}

// mainWith writes Markdown to out and progress to progress.
func mainWith(ctx context.Context, args []string, out, progress io.Writer) error {
	opt, err := parseFlags(args, progress)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rivals-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if opt.programs.beanpole == "" {
		if opt.programs.beanpole, err = buildBeanpole(ctx, dir); err != nil {
			return err
		}
	}
	var sb strings.Builder
	writeHead(&sb, args, opt.programs)
	for _, d := range opt.durabilities {
		all, err := contenders(d, opt.programs, dir)
		if err != nil {
			return err
		}
		var blocks []block
		for _, shape := range opt.shapes {
			b, err := compare(ctx, all, shape, opt.rounds, progress)
			if err != nil {
				return err
			}
			blocks = append(blocks, b)
		}
		writeSection(&sb, d, all, blocks)
	}
	fmt.Fprintf(&sb, "\n%s", differs)
	_, err = io.WriteString(out, sb.String())
	return err
}

func parseFlags(args []string, output io.Writer) (opt options, err error) {
	f := flag.NewFlagSet("rivals", flag.ContinueOnError)
	f.SetOutput(output)
	f.IntVar(&opt.rounds, "rounds", 3, "`number` of rounds; medians are printed")
	duration := f.Duration("duration", 2*time.Second, "of each measurement")
	warmup := f.Duration("warmup", 300*time.Millisecond, "before each measurement")
	size := f.Int("body", 64, "`bytes` of a job")
	loads := f.String("loads", "1x1,50x1,8x64", "`list` of connections x jobs under way on each")
	log := f.String("log", "memory,second,always", "`list` of what is kept: in memory; in a log synced each second; in a log synced before each reply")
	f.StringVar(&opt.programs.beanpole, "beanpole", "", "`path` of beanpole; empty: build it from this repository")
	f.StringVar(&opt.programs.beanstalkd, "beanstalkd", "beanstalkd", "`path` of beanstalkd")
	f.StringVar(&opt.programs.redis, "redis", "redis-server", "`path` of redis-server")
	f.StringVar(&opt.programs.nats, "nats", "nats-server", "`path` of nats-server; 2.10 and later can sync before each reply")
	if err := f.Parse(args); err != nil {
		return opt, err
	}
	if opt.rounds < 1 || *duration <= 0 || *warmup < 0 || *size < stampSize || *size > readSize/2 || f.NArg() > 0 {
		return opt, fmt.Errorf("what is asked for makes no sense: bodies have %d to %d bytes, and there is at least a round", stampSize, readSize/2)
	}
	for _, name := range strings.Split(*log, ",") {
		if !slices.Contains(durabilities, durability(name)) {
			return opt, fmt.Errorf("-log %s: not one of %s, %s, %s", name, inMemory[:], everySecond[:], always[:])
		}
		opt.durabilities = append(opt.durabilities, durability(name))
	}
	for _, name := range strings.Split(*loads, ",") {
		shape := loadShape{BodySize: *size, Warmup: *warmup, Duration: *duration}
		if _, err := fmt.Sscanf(name, "%dx%d", &shape.Connections, &shape.InFlight); err != nil || shape.Connections < 1 || shape.InFlight < 1 {
			return opt, fmt.Errorf("-loads %s: not like 50x1", name)
		}
		opt.shapes = append(opt.shapes, shape)
	}
	return opt, nil
}

// buildBeanpole builds the server of the repository that this folder is in.
func buildBeanpole(ctx context.Context, dir string) (path string, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/beanpole-mq/beanpole").Output()
	if err != nil {
		return "", fmt.Errorf("build beanpole: find its source (run this in its folder, or give -beanpole): %w", err)
	}
	path = filepath.Join(dir, "beanpole")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "./cmd/beanpole")
	build.Dir = strings.TrimSpace(string(root))
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build beanpole: %w: %s", err, said)
	}
	return path, nil
}

// compare runs one load on all contenders in turn. One that fails is left out
// of the rounds that follow; an error means that ctx is done.
func compare(ctx context.Context, all []*contender, shape loadShape, rounds int, progress io.Writer) (block, error) {
	b := block{load: shape.String()}
	for _, c := range all {
		b.rows = append(b.rows, row{name: c.name, leftOut: c.absent})
	}
	for round := range rounds {
		for i, c := range all {
			if b.rows[i].leftOut != "" {
				continue
			}
			res, err := c.run(ctx, shape)
			if ctx.Err() != nil {
				return b, ctx.Err()
			}
			if err != nil {
				b.rows[i].leftOut = fmt.Sprintf("round %d of %s: %v", round+1, b.load, err)
				continue
			}
			fmt.Fprintf(progress, "round %d, %s, %s: %s jobs/s, p99 %s\n", round+1, b.load, c, thousands(res.Jobs), micros(res.P99))
			b.rows[i].runs = append(b.rows[i].runs, res)
		}
	}
	return b, nil
}

func (l loadShape) String() string {
	plural := "s"
	if l.Connections == 1 {
		plural = ""
	}
	return fmt.Sprintf("%d connection%s, %d in flight", l.Connections, plural, l.InFlight)
}

// writeHead writes the command, the machine and the programs.
func writeHead(sb *strings.Builder, args []string, p programs) {
	shown := slices.Clone(args)
	for i, arg := range shown {
		shown[i] = withoutFolder(arg)
	}
	fmt.Fprintf(sb, "`rivals %s`\n\n%s\n", strings.Join(shown, " "), load.ThisMachine())
	for _, said := range []string{version(p.beanstalkd, "-v"), version(p.beanpole, "-v"), version(p.redis, "-v"), version(p.nats, "-v")} {
		if said != "" {
			fmt.Fprintf(sb, "- %s\n", said)
		}
	}
}

// withoutFolder shortens a path to its last element, also in "-flag=path".
func withoutFolder(arg string) string {
	i := strings.LastIndexByte(arg, filepath.Separator)
	if i < 0 {
		return arg
	}
	name, _, found := strings.Cut(arg[:i], "=")
	if found {
		return name + "=" + arg[i+1:]
	}
	return arg[i+1:]
}

func writeSection(sb *strings.Builder, d durability, all []*contender, blocks []block) {
	fmt.Fprintf(sb, "\n## %s\n\n", d)
	for _, c := range all {
		if c.absent == "" {
			fmt.Fprintf(sb, "- %s: `%s`\n", c.name, c)
		}
	}
	sb.WriteByte('\n')
	writeTable(sb, blocks)
}
