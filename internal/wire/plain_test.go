package wire

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beanpole-mq/beanpole/internal/test/seeds"
)

// For any line, the fast path for plain lines gives the same result as the general path.
func TestPlainLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(seeds.One(t), 0))
	words := []string{" ", " ", " ", "0", "7", "007", "4294967295", "4294967296", "2147483647", "2147483648", "9999999999999999999",
		"10000000000000000000", "18446744073709551615", "18446744073709551616", "00000000000000000001", "-1", "x", "\x00", "\t", "\r", "\n", "mail"}
	const usual = 20_000
	plain, lines := 0, 0
	for range seeds.Rounds(t, usual) {
		lines++
		verb := commands[rng.IntN(int(NumOps))].verb
		if rng.IntN(10) == 0 {
			verb = verb[:rng.IntN(len(verb)+1)]
		}
		line := verb
		for k := range rng.IntN(6) {
			if k > 0 && rng.IntN(8) > 0 {
				line += " "
			}
			line += words[rng.IntN(len(words))]
		}
		line += "\r\n"
		if rng.IntN(2) == 0 {
			line += strings.Repeat("b", rng.IntN(9)) + "\r\n"
		}
		buf := []byte(line[:len(line)-rng.IntN(3)])
		for compat := range Compat112 + 1 {
			one := Parser{MaxBody: 8, Compat: compat, Auth: rng.IntN(2) == 0}
			other := one
			var got, want Command
			n, ok := one.Next(buf, &got)
			wantN, wantOK := other.nextLine(buf, &want)
			if n != wantN || ok != wantOK || ok && !cmp.Equal(got, want) || one != other || got.Op != want.Op {
				t.Fatalf("%q: %d, %v, %+v; general path %d, %v, %+v", buf, n, ok, got, wantN, wantOK, want)
			}
			if m, _ := one.parsePlain(buf, &got); m > 0 {
				plain++
			}
		}
	}
	if plain < lines/200 && seeds.Enough(lines, usual) {
		t.Errorf("only %d lines of %d were plain", plain, lines)
	}
}
