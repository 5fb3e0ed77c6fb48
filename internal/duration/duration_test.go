package duration

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "30s": 30 * time.Second, "1h30m": 90 * time.Minute, "0.5s": time.Second / 2,
		"7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "65535d": 65535 * day,
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%s is %s, %v, want %s", text, got, err, want)
		}
		if got, err := Parse(Format(want)); got != want || err != nil {
			t.Errorf("%s, written as %s, is %s, %v", want, Format(want), got, err)
		}
	}
	for text, want := range map[string]string{
		"60": "want a time with its unit: 60s is seconds, 60m minutes, 60h hours, 60d days",
		"":   errUnit.Error(), "d": errUnit.Error(), "1.5d": errUnit.Error(), "-1d": errUnit.Error(), "1d-1h": errUnit.Error(),
		"1d1d": errUnit.Error(), "1h1d": errUnit.Error(), "7 d": errUnit.Error(), "65536d": errUnit.Error(),
		"-5s": "it must not be negative", "65535d2500000h": "it is too long: want at most 292 years",
	} {
		if _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
