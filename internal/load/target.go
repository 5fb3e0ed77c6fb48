package load

import "fmt"

// A Target is something that was asked of B, and what B came to.
type Target struct {
	Asked string `json:"asked"` // in words
	Got   string `json:"got"`
	Met   bool   `json:"met"`
}

// A Goal holds a comparison against a target.
type Goal func(*Comparison) Target

// nearCeiling is the share of the responder's throughput from which on the
// generator is what limits a server.
const nearCeiling = 0.95

// atLeast asks for a multiple of A's throughput, or for as much as the generator
// can ask for.
func atLeast(limit float64) Goal {
	return func(c *Comparison) Target {
		got := c.ToA.Throughput.Median
		t := Target{
			Asked: fmt.Sprintf("commands/s >= %.2f times %s's", limit, c.A.Name),
			Got:   fmt.Sprintf("%.2f", got),
			Met:   got >= limit,
		}
		if to := c.ToResponder; !t.Met && to != nil {
			t.Asked += fmt.Sprintf(", or %.2f times the responder's", nearCeiling)
			t.Got += fmt.Sprintf(", %.2f", to.Throughput.Median)
			t.Met = to.Throughput.Median >= nearCeiling
		}
		return t
	}
}

// atMost asks for a ratio to A that is not above a limit.
func atMost(what string, limit float64, of func(*Ratios) Ratio) Goal {
	return func(c *Comparison) Target {
		return ratioAtMost(fmt.Sprintf("%s <= %.2f times %s's", what, limit, c.A.Name), of(&c.ToA).Median, limit)
	}
}

func ratioAtMost(asked string, got, limit float64) Target {
	return Target{Asked: asked, Got: fmt.Sprintf("%.2f", got), Met: got > 0 && got <= limit}
}

func cpuOf(r *Ratios) Ratio { return r.CPUPerCommand }
func p50Of(r *Ratios) Ratio { return r.P50 }
func p99Of(r *Ratios) Ratio { return r.P99 }

// leanAs asks for the processor time of the responder, nearly.
func leanAs(limit float64) Goal {
	return func(c *Comparison) Target {
		var to Ratios
		if c.ToResponder != nil {
			to = *c.ToResponder
		}
		return ratioAtMost(fmt.Sprintf("CPU per command <= %.2f times the responder's", limit), to.CPUPerCommand.Median, limit)
	}
}

// keeps asks for a share of B's own throughput without the crowd. What the
// responder keeps of its own is what generator and kernel leave.
func keeps(limit float64) Goal {
	return func(c *Comparison) Target {
		var got float64
		if c.B.ToBaseline != nil {
			got = c.B.ToBaseline.Throughput.Median
		}
		t := Target{
			Asked: fmt.Sprintf("commands/s >= %.2f times those without", limit),
			Got:   fmt.Sprintf("%.2f", got),
			Met:   got >= limit,
		}
		if r := c.Responder; !t.Met && r != nil && r.ToBaseline != nil {
			t.Got += fmt.Sprintf(" (the responder: %.2f)", r.ToBaseline.Throughput.Median)
		}
		return t
	}
}

// smallEach asks for little memory for each of the crowd.
func smallEach(limit float64) Goal {
	return func(c *Comparison) Target {
		return Target{
			Asked: "memory for each <= " + bytesEach(limit),
			Got:   orDash(c.B.CrowdEach, bytesEach),
			Met:   c.B.CrowdEach > 0 && c.B.CrowdEach <= limit,
		}
	}
}
