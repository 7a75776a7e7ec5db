package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// man returns the hidden verb that prints the manual page of the command in roff, for packages. The
// page contains the same verbs, options and texts as the help.
func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Print the manual page in roff",
		Args:   noArguments,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.write([]byte(manPage(cmd.Root()))) },
	}
}

func manPage(root *cobra.Command) string {
	var out roff
	out.WriteString(`.\" Made by stackglass man; DO NOT EDIT.` + "\n")
	out.macro("TH", "STACKGLASS", "1", "", "stackglass "+root.Version, "User Commands")
	out.macro("SH", "NAME")
	out.WriteString("stackglass \\- " + escaped(strings.ToLower(root.Short[:1])+root.Short[1:]) + "\n")
	out.macro("SH", "SYNOPSIS")
	out.WriteString(".B stackglass\n.I VERB\n[\\fIFILE\\fR] [\\fIOPTIONS\\fR]\n")
	out.macro("SH", "DESCRIPTION")
	out.text(root.Long)
	for _, g := range groups {
		out.macro("SH", strings.ToUpper(g.title))
		for _, name := range g.verbs {
			if verb, _, err := root.Find([]string{name}); err == nil && verb != root {
				out.verb(verb)
			}
		}
	}
	out.macro("SH", "SEE ALSO")
	out.text("The manual: stackglass help index.")
	return out.String()
}

// roff is a manual page that is being written.
type roff struct{ strings.Builder }

// verb writes the help of a verb.
func (r *roff) verb(verb *cobra.Command) {
	r.macro("SS", verb.Name())
	r.text(verb.Short + ".\n\n  " + verb.UseLine())
	if verb.Name() == "completion" {
		return // the subcommands of completion are the shells
	}
	if verb.Long != "" {
		r.macro("PP")
		r.text(verb.Long)
	}
	var shared []string
	verb.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == "help":
		case slices.Contains(readingOptions, f.Name) && verb.Name() != "convert" && verb.Name() != "analyze":
			shared = append(shared, "--"+f.Name)
		default:
			r.option(f)
		}
	})
	if len(shared) > 0 {
		r.macro("PP")
		r.text("Options for reading a trace, as for analyze: " + strings.Join(shared, ", ") + ".")
	}
	if verb.HasExample() {
		r.macro("PP")
		r.text("Examples:\n" + verb.Example)
	}
}

func (r *roff) option(f *pflag.Flag) {
	value, about := pflag.UnquoteUsage(f)
	name := `\fB` + escaped("--"+f.Name) + `\fR`
	if f.Shorthand != "" {
		name = `\fB` + escaped("-"+f.Shorthand) + `\fR, ` + name
	}
	if value != "" {
		name += ` \fI` + escaped(value) + `\fR`
	}
	r.macro("TP")
	r.WriteString(name + "\n")
	if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "[]" {
		about += " (default " + f.DefValue + ")"
	}
	r.text(about)
}

// macro writes a line that begins with a macro.
func (r *roff) macro(name string, arguments ...string) {
	r.WriteString("." + name)
	for _, a := range arguments {
		r.WriteString(` "` + strings.ReplaceAll(escaped(a), `"`, `\(dq`) + `"`)
	}
	r.WriteByte('\n')
}

// text writes paragraphs. Lines that begin with a blank keep their line breaks.
func (r *roff) text(text string) {
	var verbatim, ended bool
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			ended = true
			continue
		}
		if as := line[0] == ' '; as != verbatim {
			verbatim = as
			if as {
				r.WriteString(".nf\n")
			} else {
				r.WriteString(".fi\n")
			}
		}
		if ended {
			r.macro("PP")
			ended = false
		}
		r.WriteString(escaped(line) + "\n")
	}
	if verbatim {
		r.WriteString(".fi\n")
	}
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`)

// escaped returns text in which no character has a special meaning.
func escaped(text string) string {
	text = escapes.Replace(text)
	if strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return text
}
