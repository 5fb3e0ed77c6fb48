package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"github.com/beanpole-mq/beanpole/internal/access"
	"github.com/beanpole-mq/beanpole/internal/rights"
)

// Clients send management commands of all kinds, with their rights. The reply to a
// command is compared with these rights, and its effect on jobs with the log's history
// and the clients' account.

// A person is a client's identity, or a client without an identity.
type person struct {
	token string // empty for a client without an identity
	may   rights.Set
	tubes string // the tube with these rights, or "*" for all
}

var (
	anybody  = person{may: rights.All, tubes: "*"} // any client of a server without identities
	stranger = person{}
	people   = []person{
		{"token-of-the-manager", rights.All, "*"},
		{"token-of-all-the-workers", rights.Put | rights.Reserve, "*"},
		{"token-of-the-postmaster", rights.All, "mail"},
	}
)

func (p *person) on(tube string) rights.Set {
	if p.tubes != "*" && p.tubes != tube {
		return rights.None
	}
	return p.may
}

// control returns the access configuration for all people.
func control() (*access.Control, error) {
	var c access.Config
	for _, p := range people {
		hash, err := access.HashOf(p.token)
		if err != nil {
			return nil, err
		}
		c.Identities = append(c.Identities, access.IdentityConfig{Name: p.token, Tokens: []access.Hash{hash}})
		c.Rules = append(c.Rules, access.RuleConfig{Identities: []string{p.token}, Tubes: []string{p.tubes}, Rights: p.may})
	}
	policy, err := access.New(c)
	if err != nil {
		return nil, err
	}
	return access.NewControl(policy, nil)
}

// anyPerson returns a random identity for a client.
func anyPerson(rng *rand.Rand, asks bool) person {
	switch {
	case !asks:
		return anybody
	case rng.IntN(8) == 0:
		return stranger
	}
	return people[rng.IntN(len(people))]
}

// greet authenticates the client on a new connection.
func (c *client) greet() bool {
	c.used = "default"
	if c.token == "" {
		return true
	}
	words, ok := c.do("auth %s\r\n", c.token)
	if ok && words[0] != "AUTHENTICATED" {
		c.world.t.Errorf("%s: auth %s: reply %s", c.world.name, c.token, words)
	}
	return ok
}

// ask is like do, for a command that needs one of the rights on each of the tubes.
// Without tubes, a right on any tube is enough.
func (c *client) ask(need rights.Set, tubes []string, format string, args ...any) (words []string, ok bool) {
	may := c.may&need != 0
	for _, tube := range tubes {
		may = may && c.on(tube)&need != 0
	}
	words, ok = c.do(format, args...)
	if ok && (words[0] == "UNAUTHORIZED") == may {
		c.world.t.Errorf("%s: a client with the rights %v on %s got the reply %s to %s", c.world.name, c.may, c.tubes, words, fmt.Sprintf(format, args...))
	}
	return words, ok
}

// read is like ask, for a command whose reply has data. It returns the data.
func (c *client) read(need rights.Set, tubes []string, format string, args ...any) (data string, ok bool) {
	words, ok := c.ask(need, tubes, format, args...)
	if !ok {
		return "", false
	}
	return c.dataOf(words)
}

// dataOf reads the data of a reply, if there is any.
func (c *client) dataOf(words []string) (data string, ok bool) {
	if words[0] != "OK" && words[0] != "FOUND" && words[0] != "RESERVED" {
		return "", true
	}
	b := make([]byte, number(words[len(words)-1])+2)
	_, err := io.ReadFull(c.in, b)
	return string(b), err == nil
}

// askOf is like do, for a command about a job, which needs a right on the job's tube if
// the job exists. It returns the data of the reply.
func (c *client) askOf(need rights.Set, verb string, id int) (data string, ok bool) {
	words, ok := c.do("%s %d\r\n", verb, id)
	if !ok {
		return "", false
	}
	if refused := words[0] == "UNAUTHORIZED" || words[0] == "NOT_FOUND"; !refused && c.may&need == 0 || c.tubes == "*" && c.may&need != 0 && words[0] == "UNAUTHORIZED" {
		c.world.t.Errorf("%s: a client with the rights %v on %s got the reply %s to %s", c.world.name, c.may, c.tubes, words, verb)
	}
	return c.dataOf(words)
}

// Jobs are moved between tubes of the same kind. Tubes of the second kind are also
// cleared.
var keptTubes, clearedTubes = []string{"default", "mail"}, []string{"spam", "more-spam"}

// cleared reports whether jobs of a tube can be deleted without notice to their producer.
func cleared(tube string) bool { return tube == clearedTubes[0] || tube == clearedTubes[1] }

var jobStates = []string{"ready", "delayed", "buried", "reserved"}

// manage sends a random management command.
func (c *client) manage() (ok bool) {
	tubes := keptTubes
	if c.rng.IntN(2) == 0 {
		tubes = clearedTubes
	}
	k := c.rng.IntN(2)
	tube, other, state, id := tubes[k], tubes[1-k], jobStates[c.rng.IntN(3)], 1+c.rng.IntN(200)
	switch c.rng.IntN(16) {
	case 0:
		return c.list(tube, jobStates[c.rng.IntN(4)], 1+c.rng.IntN(600))
	case 1:
		_, ok = c.ask(rights.Manage, tubes, "move-jobs %s %s %s %d\r\n", tube, other, state, 1+c.rng.IntN(900))
	case 2:
		_, ok = c.ask(rights.Manage, tubes, "move-jobs %s %s %s\r\n", tube, other, state)
	case 3:
		_, ok = c.ask(rights.Manage, clearedTubes[k:k+1], "flush-tube %s %s %d\r\n", clearedTubes[k], state, 1+c.rng.IntN(900))
	case 4:
		_, ok = c.ask(rights.Manage, []string{c.used}, "kick 1000000\r\n")
	case 5:
		_, ok = c.ask(rights.Manage, []string{tube}, "pause-tube %s %d\r\n", tube, c.rng.IntN(3))
	case 6:
		_, ok = c.read(rights.Peek, []string{c.used}, "peek-%s\r\n", jobStates[c.rng.IntN(3)])
	case 7:
		_, ok = c.read(rights.Stats, nil, "%s\r\n", []string{"stats", "list-tubes"}[c.rng.IntN(2)])
	case 8:
		return c.use(tube)
	case 9:
		return c.watchMany()
	case 10:
		return c.crowd()
	case 11:
		_, ok = c.askOf(rights.Manage, "kick-job", id)
	case 12:
		_, ok = c.askOf(rights.Reserve, "touch", id)
	case 13:
		var data string
		const need = rights.Reserve | rights.Stats
		data, ok = c.askOf(need, "stats-job", id)
		if m := tubeOf.FindStringSubmatch(data); m != nil && c.on(m[1])&need == 0 {
			c.world.t.Errorf("%s: a client with rights on %s only sees a job of %s", c.world.name, c.tubes, m[1])
		}
	case 14:
		_, ok = c.askOf(rights.Reserve, "reserve-job", id)
	case 15:
		_, ok = c.read(rights.Stats, []string{tube}, "stats-tube %s\r\n", tube)
	}
	return ok
}

func (c *client) use(tube string) bool {
	words, ok := c.ask(rights.Put|rights.Peek|rights.Manage|rights.Stats, []string{tube}, "use %s\r\n", tube)
	if ok && words[0] == "USING" {
		c.used = tube
	}
	return ok
}

var (
	cursorOf = regexp.MustCompile(`cursor: "?([0-9a-f.]+)`)
	tubeOf   = regexp.MustCompile(`(?m)^tube: "?([^"\n]+)`)
)

// list lists the jobs of a tube, page by page.
func (c *client) list(tube, state string, limit int) bool {
	for cursor := ""; ; {
		data, ok := c.read(rights.Stats, []string{tube}, "list-jobs %s %s %d%s\r\n", tube, state, limit, cursor)
		last := cursorOf.FindAllStringSubmatch(data, -1)
		if !ok || len(last) < limit {
			return ok
		}
		cursor = " " + last[len(last)-1][1]
	}
}

// watchMany watches more tubes than fit in one word of the engine's bitmap, or ignores
// them again.
func (c *client) watchMany() bool {
	verb := []string{"watch", "ignore"}[c.rng.IntN(2)]
	for i := range 70 {
		if verb == "ignore" {
			if _, ok := c.do("ignore w%d\r\n", i); !ok {
				return false
			}
		} else if _, ok := c.ask(rights.Reserve, []string{fmt.Sprint("w", i)}, "watch w%d\r\n", i); !ok {
			return false
		}
	}
	_, ok := c.ask(rights.Reserve, keptTubes[1:], "watch mail\r\n")
	return ok && c.use(fmt.Sprintf("w%d", c.rng.IntN(70)))
}

// crowd puts so many jobs that kicking, moving, listing or clearing them takes several
// turns.
func (c *client) crowd() bool {
	if c.on(clearedTubes[0])&rights.Put == 0 || !c.use(clearedTubes[0]) || !cleared(c.used) {
		return true
	}
	c.crowds++
	bodies := make([]string, 600+c.rng.IntN(300))
	var out strings.Builder
	for i := range bodies {
		bodies[i] = fmt.Sprintf("%s crowd %d.%d", c.name, c.crowds, i)
		c.put(bodies[i], true)
		fmt.Fprintf(&out, "put %d 1000 9 %d\r\n%s\r\n", c.rng.IntN(9), len(bodies[i]), bodies[i])
	}
	nc := c.nc
	go io.WriteString(nc, out.String()) // otherwise both sides would wait for each other
	for _, body := range bodies {
		line, err := c.in.ReadString('\n')
		words := strings.Fields(line)
		if err != nil || words[0] != "INSERTED" {
			nc.Close()
			return false
		}
		c.Inserted(body, number(words[1]))
	}
	var ok bool
	switch c.rng.IntN(4) {
	case 0:
		_, ok = c.ask(rights.Manage, []string{c.used}, "kick 700\r\n")
	case 1:
		_, ok = c.ask(rights.Manage, clearedTubes, "move-jobs %s %s delayed\r\n", clearedTubes[0], clearedTubes[1])
	case 2:
		_, ok = c.ask(rights.Manage, clearedTubes[:1], "flush-tube %s delayed\r\n", clearedTubes[0])
	case 3:
		ok = c.list(clearedTubes[0], "delayed", 250)
	}
	time.Sleep(time.Millisecond)
	return ok
}
