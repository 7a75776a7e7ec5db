package capture

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// coverageFile is the option by which the driver names the file of notes for gcov, or of the program's
// counts; clang 14 uses two words.
var coverageFile = regexp.MustCompile(`"(-coverage-(?:notes|data)-file)(=|" ")((?:[^"\\]|\\.)*)"`)

var quotedByDriver = regexp.MustCompile(`\\(.)`)

// coverageArguments keep the names of the files of --coverage. The driver is asked for those that it
// derives from the object or program; the others are named after the source.
func (b *build) coverageArguments(src *argument) (args []string) {
	if !b.line.has("--coverage", "-coverage", "-ftest-coverage", "-fprofile-arcs") {
		return nil
	}
	asked := slices.Concat([]string{"-###"}, b.line.words(aSetting, aMachine, aPhase, anOutput))
	if src.language != "" {
		asked = append(asked, "-x", src.language)
	}
	said, _ := exec.Command(b.compiler.path, append(asked, src.name())...).CombinedOutput() // a wrong line fails later
	for _, m := range coverageFile.FindAllStringSubmatch(string(said), -1) {
		file := quotedByDriver.ReplaceAllString(m[3], "$1")
		if m[2] == "=" {
			args = append(args, "-Xclang", m[1]+"="+file)
		} else {
			args = append(args, "-Xclang", m[1], "-Xclang", file)
		}
	}
	if args != nil {
		return args
	}
	for _, of := range [][2]string{{"-coverage-notes-file", ".gcno"}, {"-coverage-data-file", ".gcda"}} {
		if file, err := filepath.Abs(replaceExtension(filepath.Base(src.name()), of[1])); err == nil {
			args = append(args, "-Xclang", of[0], "-Xclang", file)
		}
	}
	return args
}
