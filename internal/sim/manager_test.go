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

// What clients do besides to produce and to consume: all other verbs, with the rights that
// they have. What such a command answers is held against those rights; what it does to the
// jobs, against the ledger and the account.

// A person is somebody that a server knows, or not.
type person struct {
	token string // empty: a stranger
	may   rights.Set
}

var (
	anybody  = person{may: rights.All} // to a server that asks nobody
	stranger = person{}
	people   = []person{{"token-of-the-manager", rights.All}, {"token-of-all-the-workers", rights.Put | rights.Reserve}}
)

// control returns what a server has to know of the people.
func control() (*access.Control, error) {
	var c access.Config
	for _, p := range people {
		hash, err := access.HashOf(p.token)
		if err != nil {
			return nil, err
		}
		c.Identities = append(c.Identities, access.IdentityConfig{Name: p.token, Tokens: []access.Hash{hash}})
		c.Rules = append(c.Rules, access.RuleConfig{Identities: []string{p.token}, Tubes: []string{"*"}, Rights: p.may})
	}
	policy, err := access.New(c)
	if err != nil {
		return nil, err
	}
	return access.NewControl(policy, nil)
}

// anyPerson returns who a client of a server is.
func anyPerson(rng *rand.Rand, asks bool) person {
	switch {
	case !asks:
		return anybody
	case rng.IntN(8) == 0:
		return stranger
	}
	return people[rng.IntN(len(people))]
}

// greet says who the client is, on a new connection.
func (c *client) greet() bool {
	c.used = "default"
	if c.token == "" {
		return true
	}
	words, ok := c.do("auth %s\r\n", c.token)
	if ok && words[0] != "AUTHENTICATED" {
		c.world.t.Errorf("%s: %s is answered %s", c.world.name, c.token, words)
	}
	return ok
}

// ask is do of a command that needs a right.
func (c *client) ask(need rights.Set, format string, args ...any) (words []string, ok bool) {
	words, ok = c.do(format, args...)
	if ok && (words[0] == "UNAUTHORIZED") == (c.may&need != 0) {
		c.world.t.Errorf("%s: who has the rights %v is answered %s to %s", c.world.name, c.may, words, fmt.Sprintf(format, args...))
	}
	return words, ok
}

// read is ask of a command whose answer has data, which it returns.
func (c *client) read(need rights.Set, format string, args ...any) (data string, ok bool) {
	words, ok := c.ask(need, format, args...)
	if !ok || words[0] != "OK" && words[0] != "FOUND" && words[0] != "RESERVED" {
		return "", ok
	}
	b := make([]byte, number(words[len(words)-1])+2)
	_, err := io.ReadFull(c.in, b)
	return string(b), err == nil
}

// Tubes that jobs are moved between. Those of the second kind are cleared, too.
var keptTubes, clearedTubes = []string{"default", "mail"}, []string{"spam", "more-spam"}

// cleared reports whether jobs of a tube may be deleted without a word to their producer.
func cleared(tube string) bool { return tube == clearedTubes[0] || tube == clearedTubes[1] }

var jobStates = []string{"ready", "delayed", "buried", "reserved"}

// manage gives one of the commands for those who look after a queue.
func (c *client) manage() (ok bool) {
	tubes := keptTubes
	if c.rng.IntN(2) == 0 {
		tubes = clearedTubes
	}
	k := c.rng.IntN(2)
	tube, other, state, id := tubes[k], tubes[1-k], jobStates[c.rng.IntN(3)], 1+c.rng.IntN(200)
	switch c.rng.IntN(15) {
	case 0:
		return c.list(tube, jobStates[c.rng.IntN(4)], 1+c.rng.IntN(600))
	case 1:
		_, ok = c.ask(rights.Manage, "move-jobs %s %s %s %d\r\n", tube, other, state, 1+c.rng.IntN(900))
	case 2:
		_, ok = c.ask(rights.Manage, "move-jobs %s %s %s\r\n", tube, other, state)
	case 3:
		_, ok = c.ask(rights.Manage, "flush-tube %s %s %d\r\n", clearedTubes[k], state, 1+c.rng.IntN(900))
	case 4:
		_, ok = c.ask(rights.Manage, "kick 1000000\r\n")
	case 5:
		_, ok = c.ask(rights.Manage, "pause-tube %s %d\r\n", tube, c.rng.IntN(3))
	case 6:
		_, ok = c.read(rights.Peek, "peek-%s\r\n", jobStates[c.rng.IntN(3)])
	case 7:
		_, ok = c.read(rights.Stats, "%s\r\n", []string{"stats", "stats-tube default", "list-tubes"}[c.rng.IntN(3)])
	case 8:
		return c.use(tube)
	case 9:
		return c.watchMany()
	case 10:
		return c.crowd()
	// What is about a job needs the rights on its tube only if there is one.
	case 11:
		_, ok = c.do("kick-job %d\r\n", id)
	case 12:
		_, ok = c.do("touch %d\r\n", id)
	case 13:
		words, ok := c.do("stats-job %d\r\n", id)
		if !ok || words[0] != "OK" {
			return ok
		}
		_, err := io.ReadFull(c.in, make([]byte, number(words[1])+2))
		return err == nil
	case 14:
		words, ok := c.do("reserve-job %d\r\n", id)
		if !ok || words[0] != "RESERVED" {
			return ok
		}
		_, err := io.ReadFull(c.in, make([]byte, number(words[2])+2))
		return err == nil
	}
	return ok
}

func (c *client) use(tube string) bool {
	words, ok := c.ask(rights.Put|rights.Peek|rights.Manage|rights.Stats, "use %s\r\n", tube)
	if ok && words[0] == "USING" {
		c.used = tube
	}
	return ok
}

var cursorOf = regexp.MustCompile(`cursor: "?([0-9a-f.]+)`)

// list lists the jobs of a tube, page by page.
func (c *client) list(tube, state string, limit int) bool {
	for cursor := ""; ; {
		data, ok := c.read(rights.Stats, "list-jobs %s %s %d%s\r\n", tube, state, limit, cursor)
		last := cursorOf.FindAllStringSubmatch(data, -1)
		if !ok || len(last) < limit {
			return ok
		}
		cursor = " " + last[len(last)-1][1]
	}
}

// watchMany watches more tubes than the engine has room for in one word of bits, or
// ignores them again.
func (c *client) watchMany() bool {
	verb := []string{"watch", "ignore"}[c.rng.IntN(2)]
	for i := range 70 {
		if verb == "ignore" {
			if _, ok := c.do("ignore w%d\r\n", i); !ok {
				return false
			}
		} else if _, ok := c.ask(rights.Reserve, "watch w%d\r\n", i); !ok {
			return false
		}
	}
	_, ok := c.do("watch mail\r\n")
	return ok && c.use(fmt.Sprintf("w%d", c.rng.IntN(70)))
}

// crowd puts so many jobs at once that to kick, move, list or clear them takes several
// turns.
func (c *client) crowd() bool {
	if c.throttled || c.may&rights.Put == 0 || !c.use(clearedTubes[0]) || !cleared(c.used) {
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
	go io.WriteString(nc, out.String()) // both sides would wait for each other
	for _, body := range bodies {
		line, err := c.in.ReadString('\n')
		words := strings.Fields(line)
		if err != nil || words[0] != "INSERTED" {
			nc.Close()
			return false
		}
		c.inserted(body, number(words[1]))
	}
	var ok bool
	switch c.rng.IntN(4) {
	case 0:
		_, ok = c.ask(rights.Manage, "kick 700\r\n")
	case 1:
		_, ok = c.ask(rights.Manage, "move-jobs %s %s delayed\r\n", clearedTubes[0], clearedTubes[1])
	case 2:
		_, ok = c.ask(rights.Manage, "flush-tube %s delayed\r\n", clearedTubes[0])
	case 3:
		ok = c.list(clearedTubes[0], "delayed", 250)
	}
	time.Sleep(time.Millisecond)
	return ok
}
