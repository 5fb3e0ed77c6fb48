package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/beanpole-mq/beanpole/client/admin"
	"github.com/beanpole-mq/beanpole/internal/cli/cliutil"
	"github.com/beanpole-mq/beanpole/internal/exit"
)

const exportLong = `Write the jobs of a tube, or of all tubes, one JSON object per line. 'beanpole import' reads
them. The export changes nothing on the server.

Jobs are sorted by tube and state, so that an import keeps the order of buried jobs. An
export takes a while: jobs that are put, deleted or change their state during the export
can be missing or occur twice. Pause the tube and stop its producers for a consistent export.`

func newExport() *cobra.Command {
	s := new(session)
	cmd := s.AdminCommand("export", "[TUBE]", "write the jobs of a tube, or of all tubes, as JSON", func(ctx context.Context, a *admin.Client, args []string) error {
		var stream *admin.Stream
		tube, err := s.oneTube(args)
		switch {
		case errors.Is(err, errNoTube):
			stream, err = a.ExportAll(ctx, &admin.ExportAll{})
		case err == nil:
			if _, err = a.GetTube(ctx, &admin.OfTube{Tube: tube}); err == nil { // the export of a missing tube is empty
				stream, err = a.ExportTube(ctx, &admin.ExportTube{OfTube: admin.OfTube{Tube: tube}})
			}
		}
		if err != nil {
			return err
		}
		defer stream.Close()
		return stream.Write(s.Out)
	})
	cmd.Long = exportLong + "\n\n" + cliutil.AdminNeeds
	cmd.Example = "  beanpole export mail >mail.ndjson\n  beanpole export >all.ndjson"
	s.defineTube(cmd, "export only `TUBE`, instead of the argument")
	return cmd
}

const importLong = `Put the jobs in FILE, or in standard input, as 'beanpole export' writes them. Each job
keeps its tube, priority, TTR, remaining delay, body and last failure. Buried jobs are
buried, and reserved jobs become ready. Jobs get new ids, and their counters start at zero.

If a line is wrong, the error names it, and the jobs of earlier lines were put. To
continue there: tail -n +LINE FILE | beanpole import. If the connection is lost, the number
of jobs that were put is unknown: clear them and import again.`

func newImport() *cobra.Command {
	var tube string
	s := new(session)
	cmd := s.adminCommand("import", "[FILE]", "put the jobs of an export", importLong, func(ctx context.Context, a *admin.Client, args []string) (err error) {
		r := s.In
		if len(args) > 0 {
			f, err := os.Open(args[0])
			if err != nil {
				return exit.UsageError("%w", err)
			}
			defer f.Close()
			r = f
		} else {
			s.noteTerminal()
		}
		in := admin.ImportAll{Lines: bufio.NewReader(r)}
		var done admin.Imported
		if tube == "" {
			done, err = a.ImportAll(ctx, &in)
		} else {
			done, err = a.ImportTube(ctx, &admin.ImportTube{OfTube: admin.OfTube{Tube: tube}, ImportAll: in})
		}
		if p, ok := errors.AsType[*admin.Problem](err); ok && p.Done != nil {
			return fmt.Errorf("%w; jobs put: %d", err, *p.Done)
		} else if err != nil {
			return err
		}
		return s.printCount("imported", done.Imported)
	})
	cmd.Example = "  beanpole import all.ndjson\n  beanpole import --tube retry <mail.ndjson"
	cmd.Flags().StringVarP(&tube, "tube", "t", "", "put all jobs into `TUBE` (default each into its own)")
	cmd.RegisterFlagCompletionFunc("tube", s.completeTubes) // fails only for an undefined flag
	return cmd
}
