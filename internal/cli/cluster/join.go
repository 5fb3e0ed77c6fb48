package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/internal/advice"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/cluster"
	"github.com/beanpole-mq/beanpole/internal/cluster/control"
	"github.com/beanpole-mq/beanpole/internal/cluster/directory"
	"github.com/beanpole-mq/beanpole/internal/cluster/raftlog"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

func newInit() *cobra.Command {
	var listen string
	cmd := cliutil.NewCommand("init DIR --listen HOST:PORT", "create the first member of a cluster in a directory", `Create the first member of a new cluster in DIR. DIR can be empty or contain the
journal of a single server, which must not run. Its jobs become the cluster's.
--listen is the address at which the other members reach this machine.`, "  beanpole cluster init /var/lib/beanpole --listen 10.0.0.1:11400", "DIR", func(cmd *cobra.Command, args []string) error {
		if err := checkListen(listen); err != nil {
			return err
		}
		id, err := initialize(args[0], listen)
		if err != nil {
			return exit.WithCode(exit.Journal, err)
		}
		return printID(cmd, id)
	})
	defineListen(cmd, &listen)
	return cmd
}

func defineListen(cmd *cobra.Command, listen *string) {
	cmd.Flags().StringVar(listen, "listen", "", "`HOST:PORT` at which other members reach this one")
}

func checkListen(listen string) error {
	if listen == "" {
		return exit.UsageError("--listen is required: the address at which other members reach this one, such as 10.0.0.1:11400")
	}
	if err := directory.CheckAddress(listen); err != nil {
		return exit.UsageError("--listen: %w", err)
	}
	return nil
}

// initialize creates the first member of a cluster.
func initialize(dir, listen string) (id uint64, err error) {
	d, err := begin(dir, listen)
	if err != nil {
		return 0, err
	}
	// No process holds the lock here. Until Finish, the mark "unfinished" keeps servers
	// from starting in the directory.
	if err := d.Clear(); err != nil {
		return 0, err
	}
	if err := cluster.Init(fsys, dir, raftlog.MemberInfo{ID: d.ID, Address: listen}); err != nil {
		return 0, err
	}
	return d.ID, d.Finish()
}

// begin prepares the directory of the first member of a cluster.
func begin(dir, listen string) (d *directory.Directory, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := advice.Lock(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := refuseBinlogs(dir); err != nil {
		return nil, err
	}
	if err := directory.CheckNone(fsys, dir); err != nil {
		return nil, err
	}
	if err := cluster.CheckInit(fsys, dir); err != nil {
		return nil, advice.Explain(dir, err)
	}
	m := directory.Identity{Listen: listen, Unfinished: directory.Init}
	return directory.Begin(fsys, dir, m, directory.NewCA(directory.NewCluster(), directory.NewID()))
}

// refuseBinlogs returns an error if a directory contains beanstalkd files. Only a single
// server imports them, because other members would lack their jobs.
func refuseBinlogs(dir string) error {
	names, err := fsys.List(dir)
	for _, name := range names {
		if strings.HasPrefix(name, "binlog.") {
			return fmt.Errorf("directory %s contains beanstalkd files (%s); import them first: start 'beanpole -b %[1]s' once, and stop it", dir, name)
		}
	}
	return err
}

func newJoinToken() *cobra.Command {
	var out string
	cmd := newMemberCommand("join-token DIR", "print a token with which one server can join", `Print a token, on one line, with which one server can join the cluster of the member in DIR.
The token is valid once, for an hour, and only at this member. Anyone who has it can become a
member, so protect it like a password.`, "  beanpole cluster join-token /var/lib/beanpole > token", "DIR", func(_ context.Context, cmd *cobra.Command, member target) error {
		t, err := member.NewToken()
		if err != nil {
			return exit.WithCode(exit.Journal, err)
		}
		if out != "" {
			return writeToken(out, t)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), t)
		return err
	})
	cmd.Flags().StringVar(&out, "out", "", "write the token to `FILE`, which only its owner can read")
	return cmd
}

// writeToken writes a token to a file. It replaces an existing file.
func writeToken(name string, t directory.Token) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(name, []byte(t.String()+"\n"), 0o600)
}

// A joining is the input of the command join.
type joining struct {
	tokenFile string
	listen    string
	replaced  uint64 // id of the member to replace, or 0
}

func newJoin() *cobra.Command {
	var j joining
	var bootstrap bool
	cmd := cliutil.NewCommand("join DIR HOST:PORT --join-token-file FILE --listen HOST:PORT", "create another member of a cluster in a directory", `Create another member of a cluster in DIR, which must contain no jobs. HOST:PORT is the
address of the member that created the token. When "beanpole -b DIR" runs, the new member
receives the queue and then votes.

With --replace, the cluster removes member ID in the same step in which the new member becomes
a voter, so the number of members that can fail never shrinks.

With --bootstrap, all members can run the same command, for example in a manifest. It does
nothing if DIR already belongs to a member. If HOST:PORT is the address of --listen, the
member joins at the member that created the token. Create the first member once, with
"beanpole cluster init".`, "  beanpole cluster join /var/lib/beanpole 10.0.0.1:11400 --join-token-file token --listen 10.0.0.2:11400", "DIR HOST:PORT", func(cmd *cobra.Command, args []string) error {
		dir, addr := args[0], args[1]
		if bootstrap {
			if is, _ := directory.Exists(fsys, dir); is {
				return nil
			}
			if addr == j.listen {
				addr = "" // the command is for the other members
			}
		}
		return j.run(cmd, dir, addr)
	})
	defineListen(cmd, &j.listen)
	cmd.Flags().StringVar(&j.tokenFile, "join-token-file", "", "read the token from `FILE`; - is standard input")
	cmd.Flags().Uint64Var(&j.replaced, "replace", 0, "join in place of member `ID`, which can be lost")
	cmd.Flags().BoolVar(&bootstrap, "bootstrap", false, "do nothing if DIR belongs to a member; if HOST:PORT is\nthe address of --listen, join at the member that\ncreated the token")
	return cmd
}

func (j *joining) run(cmd *cobra.Command, dir, addr string) error {
	if err := checkListen(j.listen); err != nil {
		return err
	}
	t, err := readToken(j.tokenFile, cmd.InOrStdin())
	if addr == "" {
		if addr = t.Address; err != nil || addr == j.listen {
			return fmt.Errorf("no member at %s; create the first member with 'beanpole cluster init', "+
				"or let a lost member join with another member's token: %w", j.listen, cmp.Or(err, errors.New("the token is for this address")))
		}
	}
	if err != nil {
		return err
	}
	if err := directory.CheckAddress(addr); err != nil {
		return exit.UsageError("the address of the member: %w", err)
	}
	release, err := mayJoin(dir)
	if err != nil {
		return exit.WithCode(exit.Journal, err)
	}
	defer release()
	ctx, cancel := withPatience(cmd)
	defer cancel()
	d, err := directory.Open(fsys, dir, directory.Join)
	if err != nil || d.Cluster != t.Cluster || d.Listen != j.listen { // no join of this member was interrupted
		d, err = j.join(ctx, dir, addr, t)
	}
	if err != nil {
		return err
	}
	if err := settle(dir, d); err != nil {
		return exit.WithCode(exit.Journal, err)
	}
	return printID(cmd, d.ID)
}

// join asks a member of the cluster to add this member, and records the answer in the
// directory. After that, the token is used up, and a repeated command does not need it.
func (j *joining) join(ctx context.Context, dir, addr string, t directory.Token) (*directory.Directory, error) {
	joined, err := control.Join(ctx, addr, t, j.listen, j.replaced)
	if err != nil {
		return nil, fmt.Errorf("join at %s: %w", addr, inTime(ctx, err))
	}
	credentials, err := joined.Bundle.Credentials(joined.Cluster, joined.ID)
	if err != nil {
		return nil, err
	}
	m, err := joins(j.listen, joined.ID, joined.Membership)
	if err != nil {
		return nil, err
	}
	m.Unfinished = directory.Join
	d, err := directory.Begin(fsys, dir, m, credentials)
	if err != nil {
		err = exit.WithCode(exit.Journal, fmt.Errorf("%w (this token is used up; repeat the command with another token)", err))
	}
	return d, err
}

// readToken reads a token from a file.
func readToken(file string, stdin io.Reader) (directory.Token, error) {
	if file == "" {
		return directory.Token{}, exit.UsageError("--join-token-file is required; create a token with 'beanpole cluster join-token DIR' on a member")
	}
	var line string
	if file == "-" {
		line, _ = bufio.NewReader(stdin).ReadString('\n')
	} else {
		text, err := os.ReadFile(file)
		if err != nil {
			return directory.Token{}, err
		}
		line = string(text)
	}
	t, err := directory.ParseToken(strings.TrimSpace(line))
	if err != nil {
		return t, exit.UsageError("--join-token-file %s: %w", file, err)
	}
	return t, nil
}

// mayJoin returns an error if a directory contains jobs, and so cannot become a member's
// directory. No server can use the directory until release is called.
func mayJoin(dir string) (release func() error, err error) {
	release = func() error { return nil }
	if err := directory.CheckNone(fsys, dir); err != nil {
		return nil, err
	}
	names, err := fsys.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return release, nil
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == "lost+found" || name == "cluster" // left behind by an interrupted join
	})
	if err != nil || len(names) == 0 {
		return release, err
	}
	notEmpty := fmt.Errorf("directory %s is not empty; a joining member gets its jobs from the others: use an empty directory", dir)
	if slices.ContainsFunc(names, func(name string) bool { return !isOfJournal(name) }) {
		return nil, notEmpty
	}
	lock, err := advice.Lock(dir)
	if err != nil {
		return nil, err
	}
	if unused, err := cluster.IsUnused(fsys, dir); err != nil || !unused {
		return nil, errors.Join(cmp.Or(err, notEmpty), lock.Close())
	}
	return lock.Close, nil
}

// isOfJournal reports whether a file can belong to a server without jobs. The
// installation of a package starts the server, which creates such files.
func isOfJournal(name string) bool {
	is, _ := filepath.Match("beanpole.*.wal", name)
	return is || name == "lock" || name == "history"
}

// joins returns the identity of a member that was added to a cluster.
func joins(listen string, id uint64, with raftlog.Membership) (m directory.Identity, err error) {
	m.Listen = listen
	for _, k := range with.Members {
		if k.ID != id {
			m.Contacts = append(m.Contacts, k.Address)
		}
	}
	m.Membership, err = json.Marshal(with)
	return m, err
}

// settle creates the log of a new member. It replaces an older log.
func settle(dir string, d *directory.Directory) error {
	var with raftlog.Membership
	if err := json.Unmarshal(d.Membership, &with); err != nil {
		return err
	}
	if err := d.Clear(); err != nil {
		return err
	}
	if err := cluster.Join(fsys, dir, with); err != nil {
		return err
	}
	return d.Finish()
}
