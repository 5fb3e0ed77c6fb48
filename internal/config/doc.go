// Package config has the settings of the server: what they are called, how they are
// read, and what they mean to the other packages.
//
// A setting has one definition, in flags.go, for its three sources. The command line takes
// precedence over the environment, and the environment over the configuration file. Options
// holds the values; settings that no option can express (listeners that differ, identities,
// rules, limits and policies of tubes) are in the tables of the file. All errors are about the command
// line, the environment or the file, and say what to write instead.
//
//	options := config.Default()
//	options.Define(flags)                       // and parse them
//	line := config.NewCommandLine(options, flags)
//	settings, err := line.Read()                // again for SIGHUP
//
// The package opens nothing but the configuration file. Start reading at options.go.
package config
