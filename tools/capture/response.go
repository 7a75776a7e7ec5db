package capture

import (
	"os"
	"strings"
)

// expandResponses replaces each @FILE by the arguments in the file, which may
// name further ones. An @FILE that cannot be read stays as it is, as compilers
// have it.
func expandResponses(args []string) []string { return expandDeep(args, 16) }

func expandDeep(args []string, depth int) []string {
	var all []string
	for _, arg := range args {
		name, is := strings.CutPrefix(arg, "@")
		if !is || depth == 0 {
			all = append(all, arg)
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			all = append(all, arg)
			continue
		}
		all = append(all, expandDeep(splitResponse(string(text)), depth-1)...)
	}
	return all
}

// splitResponse splits a response file as GNU tools do: blanks separate, quotes of
// both kinds hold together, and a backslash takes what follows as it is.
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
