package schedule

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// A cron is a parsed cron expression in a time zone.
type cron struct {
	minutes, hours, days, months, weekdays uint64 // bits
	either                                 bool   // whether a day matches by its day of the month or by its weekday
	zone                                   *time.Location
}

// A field is the syntax of a field of an expression.
type field struct {
	name     string
	min, max int
	names    []string // names of the values, starting with min
}

var fields = [...]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
	{"day of week", 0, 7, strings.Fields("sun mon tue wed thu fri sat")},
}

const day, weekday = 2, 4 // fields

var shorthands = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// maxExpression is the maximum length of an expression, in bytes.
const maxExpression = 200

// columnError returns an error about a column of an expression. Columns count from 1.
func columnError(column int, format string, args ...any) error {
	return fmt.Errorf("column %d: %s", column, fmt.Sprintf(format, args...))
}

// parseCron parses an expression of five fields, or a shorthand such as @daily.
func parseCron(text string, zone *time.Location) (*cron, error) {
	if len(text) > maxExpression {
		return nil, columnError(maxExpression+1, "the expression has more than %d characters", maxExpression)
	}
	rest := text
	if strings.HasPrefix(text, "@") {
		var known bool
		if rest, known = shorthands[strings.ToLower(strings.TrimSpace(text))]; !known {
			return nil, columnError(1, "unknown name %.20q; want @hourly, @daily, @weekly, @monthly, @yearly or five fields", text)
		}
	}
	whole := len(rest)
	var words [len(fields)]string
	var bits [len(fields)]uint64
	dayColumn := 1
	for i := range fields {
		rest = strings.TrimLeft(rest, " \t")
		column := whole - len(rest) + 1
		if i == day {
			dayColumn = column
		}
		words[i], _, _ = strings.Cut(strings.ReplaceAll(rest, "\t", " "), " ")
		if words[i] == "" {
			return nil, columnError(column, "the %s is missing; want minute, hour, day of month, month and day of week", fields[i].name)
		}
		rest = rest[len(words[i]):]
		var err error
		if bits[i], err = fields[i].parse(words[i], column); err != nil {
			return nil, err
		}
	}
	if extra := strings.TrimLeft(rest, " \t"); extra != "" {
		return nil, columnError(whole-len(extra)+1, "a sixth field; want minute, hour, day of month, month and day of week")
	}
	c := &cron{bits[0], bits[1], bits[day], bits[3], bits[weekday] | bits[weekday]>>7, words[day][0] != '*' && words[weekday][0] != '*', zone}
	if c.seek(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), 1).IsZero() { // starts in a leap year
		return nil, columnError(dayColumn, "no month has such a day")
	}
	return c, nil
}

// parse returns the values of a field as bits. column is the column at which the field
// starts.
func (f *field) parse(word string, column int) (bits uint64, err error) {
	for item := range strings.SplitSeq(word, ",") {
		span, every, stepped := strings.Cut(item, "/")
		from, to, isRange := strings.Cut(span, "-")
		low, high, step := f.min, f.max, 1
		if span != "*" {
			if low, err = f.value(from, column); err != nil {
				return 0, err
			}
			if isRange {
				if high, err = f.value(to, column+len(from)+1); err != nil {
					return 0, err
				}
				if f.max == 7 && high == 0 {
					high = 7 // 7 is Sunday, too
				}
				if high < low {
					return 0, columnError(column, "the range %s of the %s ends before it starts", span, f.name)
				}
			} else if !stepped {
				high = low
			}
		}
		if stepped {
			if step, err = strconv.Atoi(every); err != nil || step < 1 || step > f.max {
				return 0, columnError(column+len(span)+1, "bad step %.20q of the %s; want a number from 1 to %d", every, f.name, f.max)
			}
		}
		for v := low; v <= high; v += step {
			bits |= 1 << v
		}
		column += len(item) + 1
	}
	return bits, nil
}

// value returns the number for a value.
func (f *field) value(text string, column int) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max {
		or := ""
		if f.names != nil {
			or = fmt.Sprintf(", or a name from %s to %s", f.names[0], f.names[len(f.names)-1])
		}
		return 0, columnError(column, "bad %s %.20q; want a number from %d to %d%s", f.name, text, f.min, f.max, or)
	}
	return n, nil
}

// maxYears is the number of years within which each valid expression matches, even around
// 2100, which is not a leap year.
const maxYears = 9

// seek returns the first matching local minute at or after t. If dir is -1, it returns
// the last one at or before t. It returns the zero time if no minute matches. The
// time.Time values represent local minutes as UTC.
func (c *cron) seek(t time.Time, dir int) time.Time {
	end := t.AddDate(dir*maxYears, 0, 0)
	leave := func(first, next time.Time) time.Time { // moves to the next month, day or hour
		if dir < 0 {
			return first.Add(-time.Minute)
		}
		return next
	}
	for t.Compare(end)*dir < 0 {
		y, m, d := t.Date()
		hour := t.Truncate(time.Hour)
		switch {
		case c.months>>m&1 == 0:
			t = leave(time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC))
		case !c.hasDay(d, t.Weekday()):
			t = leave(time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC))
		case c.hours>>t.Hour()&1 == 0:
			t = leave(hour, hour.Add(time.Hour))
		case c.minutes>>t.Minute()&1 == 0:
			t = t.Add(time.Duration(dir) * time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// hasDay reports whether a day matches. As in other crons, a match in one of the two
// fields is enough if neither starts with *.
func (c *cron) hasDay(day int, weekday time.Weekday) bool {
	byDay, byWeekday := c.days>>day&1 == 1, c.weekdays>>weekday&1 == 1
	if c.either {
		return byDay || byWeekday
	}
	return byDay && byWeekday
}

// local returns the local minute that contains a time in seconds since 1970.
func (c *cron) local(moment int64) time.Time {
	t := time.Unix(moment, 0).In(c.zone)
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
}

// moment returns the time of a local minute in seconds since 1970: the minute's first
// occurrence, or the next valid time if it does not occur. It does not use
// time.Time.ZoneBounds, whose end is wrong on the last day of leap years from 2040 on.
func (c *cron) moment(local time.Time) int64 {
	const farthest = 26 * 60 * 60 // no zone is this far from UTC
	at := local.Unix()
	before, after := c.offset(at-farthest), c.offset(at+farthest)
	if before == after || c.offset(at-before) == before {
		return at - before
	}
	if c.offset(at-after) == after {
		return at - after
	}
	first := at - farthest
	return first + int64(sort.Search(2*farthest, func(n int) bool { return c.offset(first+int64(n)) != before }))
}

// offset returns the offset of the zone from UTC at a given time.
func (c *cron) offset(moment int64) int64 {
	_, offset := time.Unix(moment, 0).In(c.zone).Zone()
	return int64(offset)
}

// next returns the time of the first run after the given time, or never.
func (c *cron) next(after int64) int64 {
	for local := c.local(after); ; {
		if local = c.seek(local.Add(time.Minute), 1); local.IsZero() {
			return never
		}
		if moment := c.moment(local); moment > after {
			return moment
		}
	}
}

// due returns the times of runs after one time and up to another, latest first, at most
// most.
func (c *cron) due(after, upto int64, most int) (all []int64) {
	at := c.local(upto)
	local := c.seek(at, -1)
	if local.IsZero() {
		return nil
	}
	last := c.moment(local)
	if c.moment(at) < upto-59 { // the local time has occurred earlier, and so have later times
		for next := c.next(last); next <= upto; next = c.next(last) {
			last, local = next, c.local(next)
		}
	}
	for !local.IsZero() && last > after && len(all) < most {
		all = append(all, last)
		for before := last; last == before && !local.IsZero(); last = c.moment(local) {
			local = c.seek(local.Add(-time.Minute), -1)
		}
	}
	return all
}
