package capture

import (
	"os"
	"strings"
)

// expandResponses replaces each @FILE by the arguments in the file, recursively. Like compilers, it keeps
// an @FILE that cannot be read.
func expandResponses(args []string) []string { return expandDeep(args, 16) }

func expandDeep(args []string, depth int) []string {
	var all []string
	for _, arg := range args {
		if name, is := strings.CutPrefix(arg, "@"); is && depth > 0 {
			if text, err := os.ReadFile(name); err == nil {
				all = append(all, expandDeep(splitResponse(string(text)), depth-1)...)
				continue
			}
		}
		all = append(all, arg)
	}
	return all
}

// splitResponse splits a response file as GNU tools do: at blanks, with quotes of both kinds and backslashes.
func splitResponse(text string) (args []string) {
	var word strings.Builder
	within, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			within = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, within = c, true
		case quote == 0 && strings.IndexByte(" \t\r\n\f\v", c) >= 0:
			if within {
				args = append(args, word.String())
			}
			word.Reset()
			within = false
		default:
			word.WriteByte(c)
			within = true
		}
	}
	if within {
		args = append(args, word.String())
	}
	return args
}
