package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/beanpole-mq/beanpole/internal/flags"
	"github.com/beanpole-mq/beanpole/internal/server"
)

// Parsers for the values of settings.

func parseSwitch(s string) (bool, error) {
	on, err := strconv.ParseBool(s)
	if err != nil {
		return false, errors.New("want true or false")
	}
	return on, nil
}

func parseBytes(s string) (int64, error) {
	return flags.Size(s, math.MaxInt64)
}

// parseLimit returns a parser for numbers of at least zero.
func parseLimit(what string) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := flags.Number(s, what, math.MaxInt32)
		return int(n), err
	}
}

// text returns a parser that accepts any text except the empty one.
func text(what string) func(string) (string, error) {
	return func(s string) (string, error) {
		if s == "" {
			return "", errors.New("want " + what)
		}
		return s, nil
	}
}

var parseDir, parseFile, parseUser = text("a directory"), text("the path of a file"), text("the name or number of a user")

func parsePort(s string) (string, error) { return s, server.CheckPort(s) }

// parseAddress validates an address to listen on and returns it unchanged, because its
// default port can be set later.
func parseAddress(s string) (string, error) {
	_, err := server.ParseAddress(s, server.DefaultPort)
	return s, err
}

func parseNetwork(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	n, err := netip.ParsePrefix(s)
	if err != nil {
		return n, fmt.Errorf("%q is not a network: want an address such as 10.1.2.3, or 10.0.0.0/8", s)
	}
	return n.Masked(), nil
}

// parseAll parses each of the given values.
func parseAll[S, T any](given []S, parse func(S) (T, error)) (all []T, err error) {
	for _, s := range given {
		v, err := parse(s)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func parseMode(s string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > uint64(fs.ModePerm) {
		return 0, errors.New("want permissions in octal, such as 0660")
	}
	return fs.FileMode(n), nil
}

// parseMillis parses a number of milliseconds, at most a century.
func parseMillis(s string) (time.Duration, error) {
	n, err := flags.Number(s, "milliseconds", 100*365*24*3600*1000)
	return time.Duration(n) * time.Millisecond, err
}

func parseLogFormat(s string) (string, error) {
	if s != "text" && s != "json" {
		return "", errors.New("want text or json")
	}
	return s, nil
}
