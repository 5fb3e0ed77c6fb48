package wire

import "math"

// plainDigits is the maximum number of digits of a number that needs no check for
// overflow.
const plainDigits = 19

// parsePlain parses a line in the form that nearly all clients send: a verb and numbers,
// separated by single spaces. It examines each byte once, and takes a quarter of the
// instructions of parseLine. It returns the number of bytes and the size of the body that
// a put announces. n is 0 if the line has another form or is incomplete.
func (p *Parser) parsePlain(buf []byte, cmd *Command) (n int, size uint32) {
	op, i := recognize(buf)
	if !isPlain[op] {
		return 0, 0
	}
	for k, a := range &commands[op].args {
		if a == argEnd || a == argIgnored {
			break
		}
		if k > 0 {
			if i == len(buf) || buf[i] != ' ' {
				return 0, 0
			}
			i++
		}
		v, begin := uint64(0), i
		for ; i < len(buf); i++ {
			d := buf[i] - '0'
			if d > 9 {
				break
			}
			v = v*10 + uint64(d)
		}
		if i == begin || i-begin > plainDigits || v > math.MaxUint32 && a != argID {
			return 0, 0
		}
		switch a {
		case argID:
			cmd.ID = v
		case argPri:
			cmd.Pri = uint32(v)
		case argDelay:
			cmd.Delay = uint32(v)
		case argTTR:
			cmd.TTR = uint32(v)
		case argSize:
			size = uint32(v)
		case argCount:
			cmd.Count = uint32(v)
		case argTimeout:
			if v > MaxTimeout || p.Compat == Compat112 {
				return 0, 0
			}
			cmd.Timeout = uint32(v)
		}
	}
	if len(buf)-i < len(crlf) || buf[i] != crlf[0] || buf[i+1] != crlf[1] {
		return 0, 0
	}
	cmd.Op, cmd.Counted = op, true
	return i + len(crlf), size
}

// isPlain marks the commands whose arguments are all numbers.
var isPlain = func() (t [NumOps]bool) {
	for op := Unknown + 1; op < NumOps; op++ {
		t[op] = true
		for _, a := range commands[op].args {
			t[op] = t[op] && a <= argCount
		}
	}
	return t
}()
