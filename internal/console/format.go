package console

import (
	"html/template"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/beanpole-mq/beanpole/internal/decode"
	"github.com/beanpole-mq/beanpole/internal/op"
)

// functions contains the template functions.
var functions = template.FuncMap{
	"verb": func(do string) string { return actions[do].Verb }, "dangerous": func(do string) bool { return actions[do].Danger }, "num": numOf, "bytes": func(n any) string { return byteSize(whole(n)) }, "secs": func(n any) string { return duration(whole(n)) }, "rate": rate,
	"hint": hint, "policyLink": policyLink, "plainly": func(text string) string { return strings.ReplaceAll(text, "`", "") }, "sections": func() []string { return sections },
	"zero": zeroClass, "visible": decode.Visible, "clock": clock, "took": func(seconds float64) string { return time.Duration(seconds * 1e9).String() }, "has": slices.Contains[[]string], "pathEscape": op.Segment, "queryEscape": url.QueryEscape,
	"since": since, "at": at, "when": when, "isPast": isPast, "mean": meanText, "list": func(all ...string) []string { return all },
	"plural": func(n any, one, many string) string { return plural(uint64(whole(n)), one, many) }, "sentence": sentence, "capital": sentenceCase, "add": func(a, b int) int { return a + b }, "dict": dict,
}

// hint explains an action to users of other queues.
func hint(do string) string {
	switch actions[do].Verb {
	case "Kick":
		return "Retry: make failed or delayed jobs ready"
	case "Bury":
		return "Set aside: workers do not get buried jobs"
	case "Redrive":
		return "Return dead jobs to the tube where they failed"
	}
	return ""
}

// whole returns an integer of any type as an int64.
func whole(n any) int64 {
	v := reflect.Indirect(reflect.ValueOf(n))
	if v.CanUint() {
		return int64(min(v.Uint(), math.MaxInt64))
	}
	return v.Int()
}

func numOf(n any) string { return num(whole(n)) }

// dict creates a map of names and values, for a template with several arguments.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any)
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0].(string)] = pair[1]
	}
	return m
}

const (
	thinSpace = "\u202f"
	minus     = "\u2212"
)

// num groups the digits of a number.
func num(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if text[0] == '-' {
		sign, text = minus, text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + thinSpace + text[i:]
	}
	return sign + text
}

// byteSize formats a number of bytes with about three digits.
func byteSize(n int64) string {
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 1000 {
			return shortNumber(v) + thinSpace + unit
		}
		v /= 1024
	}
	return shortNumber(v) + thinSpace + "TiB"
}

// shortNumber formats a number, with one decimal if it is small and not whole.
func shortNumber(v float64) string {
	if v >= 100 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// duration formats seconds in the largest unit that fits.
func duration[T int64 | float64](seconds T) string {
	s := float64(seconds)
	switch {
	case s == 0:
		return "0" + thinSpace + "s"
	case s < 0.001:
		return shortNumber(s*1e6) + thinSpace + "µs"
	case s < 1:
		return shortNumber(math.Round(s*1e4)/10) + thinSpace + "ms"
	case s < 120:
		return shortNumber(math.Floor(s*10)/10) + thinSpace + "s"
	case s < 2*3600:
		return shortNumber(math.Floor(s/60)) + thinSpace + "min"
	case s < 48*3600:
		return shortNumber(math.Floor(s/3600)) + thinSpace + "h"
	}
	return num(int64(s/86400)) + thinSpace + "d"
}

// rate formats a number per second.
func rate(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return num(int64(v))
}

// meanText formats the mean of durations.
func meanText(count uint64, seconds float64) string {
	if count == 0 {
		return "–"
	}
	return duration(seconds / float64(count))
}

// zeroClass returns the class of a text that shows zero.
func zeroClass(text string) string {
	if text == "0" || text == "–" || text == "0"+thinSpace+"s" {
		return "zero"
	}
	return ""
}

// timeOf returns a time of the API: a number of seconds since 1970, or a text.
func timeOf(t any) time.Time {
	if text, ok := t.(string); ok {
		at, _ := time.Parse(time.RFC3339, text) // the zero time if another server sends something else
		return at.UTC()
	}
	return time.Unix(whole(t), 0).UTC()
}

// when formats a time of the API for display.
func when(t any) string { return timeOf(t).Format("2006-01-02 15:04:05 UTC") }

// isPast reports whether a time of the API is before another.
func isPast(now time.Time, t any) bool { return timeOf(t).Before(now) }

func since(now time.Time, t any) string {
	return duration(int64(now.Sub(timeOf(t)).Seconds())) + " ago"
}

// at returns the time that was ago seconds ago, for the title of a duration.
func at(now time.Time, ago any) string {
	return now.Add(-time.Duration(whole(ago)) * time.Second).Format("2006-01-02 15:04:05 UTC")
}

func plural(n uint64, one, many string) string {
	if n == 1 {
		return numOf(n) + " " + one
	}
	return numOf(n) + " " + many
}

// sentence turns a text into a sentence: it capitalizes the first word, unless that word
// contains capitals, and adds a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(text)
	if word, _, _ := strings.Cut(text[n:], " "); word == strings.ToLower(word) {
		first = unicode.ToUpper(first)
	}
	return string(first) + strings.TrimSuffix(text[n:], ".") + "."
}
