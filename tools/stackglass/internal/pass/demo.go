package pass

import (
	"strings"

	"github.com/stackglass/stackglass/site"
)

// FindDemo gives the embedded demo of that name; the error is a [*DemoError].
func FindDemo(name string) (site.Demo, error) {
	demos, err := site.Demos()
	if err != nil {
		return site.Demo{}, err
	}
	missing := &DemoError{Name: name}
	for _, d := range demos {
		if d.Name == name {
			return d, nil
		}
		missing.Have = append(missing.Have, d.Name)
	}
	return site.Demo{}, missing
}

// DemoError tells of a demo that there is not.
type DemoError struct {
	Name string
	Have []string // those that there are
}

func (e *DemoError) Error() string {
	return "there is no demo " + e.Name + "; there are " + strings.Join(e.Have, ", ")
}
