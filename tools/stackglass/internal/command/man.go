package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// man returns the hidden verb that prints the manual page of the command in roff, for distribution
// packages. The page contains the same verbs, options and texts as the help.
func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Print the manual page in roff format",
		Args:   noArguments,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.write([]byte(manPage(cmd.Root()))) },
	}
}

func manPage(root *cobra.Command) string {
	var out roff
	out.WriteString(`.\" Made by stackglass man; DO NOT EDIT.` + "\n")
	out.writeMacro("TH", "STACKGLASS", "1", "", "stackglass "+root.Version, "User Commands")
	out.writeMacro("SH", "NAME")
	out.WriteString("stackglass \\- " + escapeRoff(strings.ToLower(root.Short[:1])+root.Short[1:]) + "\n")
	out.writeMacro("SH", "SYNOPSIS")
	out.WriteString(".B stackglass\n.I VERB\n[\\fIFILE\\fR] [\\fIOPTIONS\\fR]\n")
	out.writeMacro("SH", "DESCRIPTION")
	out.writeText(root.Long)
	for _, g := range groupsOf(root) {
		out.writeMacro("SH", strings.ToUpper(g.title))
		for _, name := range g.verbs {
			if verb, _, err := root.Find([]string{name}); err == nil && verb != root {
				out.writeVerb(verb)
			}
		}
	}
	out.writeMacro("SH", "SEE ALSO")
	out.writeText("The manual: stackglass help index.")
	return out.String()
}

// roff collects the text of a manual page.
type roff struct{ strings.Builder }

// writeVerb writes the help text of a verb.
func (r *roff) writeVerb(verb *cobra.Command) {
	r.writeMacro("SS", verb.Name())
	r.writeText(verb.Short + ".\n\n  " + verb.UseLine())
	if verb.Name() == "completion" {
		return // the subcommands of the verb "completion" are only the names of shells
	}
	if verb.Long != "" {
		r.writeMacro("PP")
		r.writeText(verb.Long)
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
		r.writeMacro("PP")
		r.writeText("Options for reading a trace, as for analyze: " + strings.Join(shared, ", ") + ".")
	}
	if verb.HasExample() {
		r.writeMacro("PP")
		r.writeText("Examples:\n" + verb.Example)
	}
}

func (r *roff) option(f *pflag.Flag) {
	value, about := pflag.UnquoteUsage(f)
	name := `\fB` + escapeRoff("--"+f.Name) + `\fR`
	if f.Shorthand != "" {
		name = `\fB` + escapeRoff("-"+f.Shorthand) + `\fR, ` + name
	}
	if value != "" {
		name += ` \fI` + escapeRoff(value) + `\fR`
	}
	r.writeMacro("TP")
	r.WriteString(name + "\n")
	if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "[]" {
		about += " (default " + f.DefValue + ")"
	}
	r.writeText(about)
}

// writeMacro writes a roff macro and its arguments.
func (r *roff) writeMacro(name string, arguments ...string) {
	r.WriteString("." + name)
	for _, a := range arguments {
		r.WriteString(` "` + strings.ReplaceAll(escapeRoff(a), `"`, `\(dq`) + `"`)
	}
	r.WriteByte('\n')
}

// writeText writes paragraphs. Lines that begin with a blank keep their line breaks.
func (r *roff) writeText(text string) {
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
			r.writeMacro("PP")
			ended = false
		}
		r.WriteString(escapeRoff(line) + "\n")
	}
	if verbatim {
		r.WriteString(".fi\n")
	}
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`)

// escapeRoff escapes all characters that have a special meaning in roff.
func escapeRoff(text string) string {
	text = escapes.Replace(text)
	if strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return text
}
