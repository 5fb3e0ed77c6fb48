package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/flags"
)

const rootLong = `A work queue server that speaks the beanstalk protocol, and the commands to use it.

The most common options of the server; "beanpole serve --help" lists all:
  -l ADDR   listen on ADDR: IP:PORT or unix:PATH; repeatable (default 127.0.0.1)
  -p PORT   default port (default 11300)
  -b DIR    store jobs in DIR, so that they survive a restart or crash
  -z SIZE   maximum size of a job body (default 65535)
  -u USER   switch to USER after opening the sockets
  -V        log more
  -v        print the version

Documentation: https://github.com/beanpole-mq/beanpole/tree/main/doc`

const rootExample = `  beanpole                                    serve 127.0.0.1:11300, jobs in memory
  beanpole -l 0.0.0.0 -b /var/lib/beanpole    serve the network, jobs on disk
  beanpole put mail 'to: a@example.com'       put a job into the tube mail
  beanpole work mail -- sendmail -t           run a command for each job of mail
  beanpole top                                watch the tubes`

const connectionLong = `Options for the server that a command uses, after the command:

  beanpole tubes --addr queue.example.com:11300 --token-file token

Commands for one job or tube use the beanstalk protocol at --addr. Commands for lists,
patterns or many jobs use the admin API of a beanpole server. Such a command finds the API of a
server on this machine by the port in --addr. For another server, give --admin.`

const environmentLong = `Environment variables, files and exit codes.

Environment:
  BEANPOLE_ADDR        default of --addr for commands
  BEANPOLE_ADMIN_ADDR  default of --admin for commands without --addr
  BEANPOLE_TOKEN       default of --token for commands
  BEANPOLE_SETTING     a setting of the server, for example BEANPOLE_MAX_JOB_SIZE
  LISTEN_FDS, NOTIFY_SOCKET
                       socket activation and readiness of systemd

Files:
  /etc/beanpole/beanpole.toml  settings of the service; see beanpole.toml(5)
  /var/lib/beanpole            journal of the service
  /var/lib/beanpole/cluster    keys, certificates, tokens and log of a cluster member
  /run/beanpole/PORT.sock      admin API of the server for this machine
  /usr/share/doc/beanpole      documentation

Exit codes:
  0    success, including a server that a signal stopped
  1    failure; the line on standard error has the reason
  2    not found: no such job or tube, or no job in time
  3    no connection to the server
  4    not permitted: the token is missing, wrong, or lacks a right
  5    wrong command line, environment variable or configuration file
  10   the journal's directory is missing, not permitted, in use, or damaged
  32   the user of -u cannot be looked up
  33   the user of -u does not exist
  34   the server cannot switch to the user of -u
  111  the server cannot open a socket
  130  a signal interrupted the command`

// connectionTopic is the help topic with the connection options of all commands.
const connectionTopic = "connection"

// newTopics returns the help topics that are not commands.
func newTopics() []*cobra.Command {
	var s cliutil.Session
	connection := &cobra.Command{Use: connectionTopic, Short: "options for the server that a command uses", Long: connectionLong}
	s.Server.Define(connection.Flags())
	s.DefineAdmin(connection)
	return []*cobra.Command{connection, {Use: "environment", Short: "environment variables, files and exit codes", Long: environmentLong}}
}

// newHelp returns the help command: "beanpole help serve" is "beanpole serve --help".
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "explain a command or topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return cliutil.UnknownArgument(root, args)
			}
			return topic.Help()
		},
	}
}

const helpTemplate = `{{index (paragraphs .) 0}}{{if or .Runnable .HasAvailableSubCommands}}

Usage:
  {{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{with index (paragraphs .) 1}}

{{.}}{{end}}{{if .HasAvailableSubCommands}}{{$commands := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $commands}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name 11}} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}

{{if .HasParent}}Commands{{else}}Help{{end}}:{{range $commands}}{{if and (eq .GroupID "") (or .IsAvailableCommand .IsAdditionalHelpTopicCommand)}}
  {{rpad .Name 11}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{range flagGroups .}}

{{.Title}}:
{{trimTrailingWhitespaces .Usages}}{{end}}{{if usesServer .}}

Connection options: see "beanpole help connection".{{end}}
`

// useTemplates makes root and its commands print their help with helpTemplate.
func useTemplates(root *cobra.Command) {
	cobra.AddTemplateFunc("paragraphs", paragraphs)
	cobra.AddTemplateFunc("flagGroups", flagGroups)
	cobra.AddTemplateFunc("usesServer", usesServer)
	root.SetHelpTemplate(helpTemplate)
}

// paragraphs returns the first paragraph of a command's description, and the remaining
// paragraphs.
func paragraphs(cmd *cobra.Command) [2]string {
	if cmd.Long == "" {
		return [2]string{strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."}
	}
	first, others, _ := strings.Cut(cmd.Long, "\n\n")
	return [2]string{first, others}
}

// usesServer reports whether a command has connection options, which its help omits.
func usesServer(cmd *cobra.Command) bool {
	return cmd.Flags().Lookup("server-timeout") != nil && cmd.Name() != connectionTopic
}

// A flagGroup is a titled group of flags.
type flagGroup struct{ Title, Usages string }

// An untyped is a flag value that hides its type, which pflag would show in the help.
type untyped struct{ pflag.Value }

func (untyped) Type() string { return "" }

// flagGroups returns the flags of a command in the order of their definition.
func flagGroups(cmd *cobra.Command) (groups []flagGroup) {
	const own = "Options"
	titles := []string{own}
	sets := make(map[string]*pflag.FlagSet)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		title := own
		if group := f.Annotations[flags.GroupKey]; len(group) > 0 {
			title = group[0]
		}
		if !cmd.HasParent() || title == cliutil.ServerTitle && cmd.Name() != connectionTopic || title == own && cmd.Name() == connectionTopic {
			return
		}
		if sets[title] == nil {
			sets[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			sets[title].SortFlags = false
			if title != own {
				titles = append(titles, title)
			}
		}
		shown := *f
		if f.NoOptDefVal != "" {
			shown.Value, shown.NoOptDefVal = untyped{f.Value}, ""
		}
		if strings.HasSuffix(f.Usage, ")") { // the usage contains the default
			shown.Value, shown.DefValue = untyped{f.Value}, ""
		}
		sets[title].AddFlag(&shown)
	})
	for _, title := range titles {
		if set := sets[title]; set != nil && set.HasAvailableFlags() {
			groups = append(groups, flagGroup{title, set.FlagUsages()})
		}
	}
	return groups
}
