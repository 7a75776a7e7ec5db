package capture

import "strings"

// wrapped are the functions that the runtime stands before.
var wrapped = []string{
	"_exit", "_Exit", "execve", "execv", "execvp", "execvpe", "fexecve", "execl", "execlp", "execle",
	"pthread_create", "pthread_join",
}

// programLink are arguments that put the runtime into a program.
func (r *Runtime) programLink() []string {
	return []string{
		r.Program,
		"-Wl,--wrap=" + strings.Join(wrapped, ",--wrap="),
		"-Wl,--dynamic-list=" + r.Exports,
		"-lpthread",
	}
}
