package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/stackglass/stackglass/tools/stackglass/internal/chart"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// plotFiles are the pictures that a verb was asked for.
type plotFiles struct{ svg, png string }

func (p *plotFiles) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.svg, "svg", "", "draw it to this SVG `FILE` too")
	cmd.Flags().StringVar(&p.png, "png", "", "draw it to this PNG `FILE` too")
}

// save draws into every file that was asked for.
func (p *plotFiles) save(draw func() (*chart.Chart, error)) error {
	for _, file := range []struct {
		path   string
		format chart.Format
	}{{p.svg, chart.SVG}, {p.png, chart.PNG}} {
		if file.path == "" {
			continue
		}
		drawn, err := draw()
		if err != nil {
			return err
		}
		if err := wholefile.Save(file.path, func(w io.Writer) error { return drawn.Write(w, file.format) }); err != nil {
			return &outputError{path: file.path, err: err}
		}
	}
	return nil
}
