// Package config defines the settings of the server, reads them, and converts them for
// the other packages.
//
// A setting has one definition, in flags.go, for its three sources. The command line
// takes precedence over the environment, and the environment over the configuration file.
// Options contains the values. Settings that no option can express (different listeners,
// identities, rules, limits and policies of tubes) are in tables of the file. Each error
// describes the mistake in the command line, the environment or the file, and how to
// correct it.
//
//	options := config.Default()
//	options.Define(flags)                       // then parse them
//	line := config.NewCommandLine(options, flags)
//	settings, err := line.Read()                // again on SIGHUP
//
// The package opens only the configuration file. Start reading at options.go.
package config
