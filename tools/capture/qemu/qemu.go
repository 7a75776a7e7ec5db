// Package qemu records the memory references of programs that were not compiled
// for it, by QEMU's user mode emulation.
//
// QEMU translates a program's instructions block by block and can be asked to call
// a plugin at each block and each reference. The plugin, C in folder plugin, writes
// the container .sgt by way of the same code as the runtime of instrumented
// programs. No package has it: it is compiled when it is first needed, by whatever
// compiler there is, and kept in the user's cache.
//
// What is recorded is what the emulator does: of 16 bytes two accesses of 8; of a
// repeated instruction (rep movs) one access an element, and an entry of its block
// each time it starts over. Loads and stores of an instruction are apart, those of
// an atomic one too. QEMU 7 has no AVX-512: programs that insist on it end. What the
// kernel reads and writes is not seen, nor are children of the process.
//
// The recording is to be finished by package arrange, which puts names to
// addresses.
package qemu

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/tools/capture"
)

//go:embed plugin/*.c plugin/*.h
var sources embed.FS

// emulators are the QEMU programs by the machine that a program is for. They are
// those that were tried; addresses of 32 bits would need another header.
var emulators = map[elf.Machine]string{
	elf.EM_X86_64:  "qemu-x86_64",
	elf.EM_AARCH64: "qemu-aarch64",
	elf.EM_RISCV:   "qemu-riscv64",
}

// Emulator gives the path of the QEMU that runs programs of that machine. name is
// what it is called, "" where there is none for the machine.
func Emulator(m elf.Machine) (path, name string, err error) {
	if name = emulators[m]; name == "" {
		return "", "", fmt.Errorf("programs for %v cannot be traced; only those for x86-64, AArch64 and 64-bit RISC-V", m)
	}
	path, err = exec.LookPath(name)
	return path, name, err
}

// BuildError tells that the plugin cannot be made.
type BuildError struct {
	Compiler string // "" where there is none
	Output   string // what it said
}

func (e *BuildError) Error() string {
	if e.Compiler == "" {
		return "QEMU's plugin has to be compiled once, and there is no C compiler; install one (apt-get install gcc libc6-dev)"
	}
	said, _, _ := strings.Cut(strings.TrimSpace(e.Output), "\n")
	return e.Compiler + " cannot compile QEMU's plugin: " + said + "; install a C library for development (apt-get install libc6-dev)"
}

// compilers are tried in this order.
var compilers = []string{"cc", "gcc", "clang"}

// runtimeParts are the sources of the runtime that the plugin has in it.
var runtimeParts = []string{"encode.c", "file.c", "pack.c", "system.c"}

// Plugin gives the path of the plugin for that QEMU, from the user's cache if it is
// there already.
func Plugin(ctx context.Context, emulator string) (string, error) {
	version, err := interfaceVersion(ctx, emulator)
	if err != nil {
		return "", err
	}
	files, err := allSources()
	if err != nil {
		return "", err
	}
	var failed error
	for _, cache := range capture.Caches() {
		plugin := filepath.Join(cache, "qemu-"+key(files, version)+".so")
		if _, err := os.Stat(plugin); err == nil {
			return plugin, nil
		}
		failed = build(ctx, plugin, files, version)
		if failed == nil {
			return plugin, nil
		}
		if errors.As(failed, new(*BuildError)) {
			break
		}
	}
	return "", failed
}

// interfaceVersion is the version of the plugins' interface that the plugin is to
// say it is made for. The part of it that we use is the same in all of them, but
// QEMU 9 takes no plugin of version 1 and QEMU 8 none of version 2.
func interfaceVersion(ctx context.Context, emulator string) (int, error) {
	said, err := exec.CommandContext(ctx, emulator, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("%s --version: %w", emulator, err)
	}
	_, after, _ := strings.Cut(string(said), " version ")
	major, _, _ := strings.Cut(after, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0, fmt.Errorf("%s --version says %q, want a version of QEMU", emulator, strings.TrimSpace(string(said)))
	}
	if n >= 9 {
		return 2, nil
	}
	return 1, nil
}

// source is one file, by its path from the folder that has runtime and qemu.
type source struct {
	path string
	text []byte
}

func allSources() (all []source, err error) {
	for _, from := range []struct {
		files  fs.FS
		folder string
		prefix string
	}{{sources, "plugin", "qemu"}, {capture.Sources(), "runtime", ""}} {
		err = fs.WalkDir(from.files, from.folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(from.files, path)
			all = append(all, source{filepath.Join(from.prefix, path), text})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// key is different whenever the plugin would be.
func key(files []source, version int) string {
	sum := sha256.New()
	fmt.Fprintln(sum, version, options)
	for _, f := range files {
		fmt.Fprintln(sum, f.path, len(f.text))
		sum.Write(f.text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:24]
}

var options = []string{"-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"}

// build compiles the plugin, and puts it in its place when it is whole.
func build(ctx context.Context, plugin string, files []source, version int) error {
	compiler := findCompiler()
	if compiler == "" {
		return &BuildError{}
	}
	if err := os.MkdirAll(filepath.Dir(plugin), 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(plugin), "build-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	args := append([]string{}, options...)
	args = append(args, "-DQEMU_PLUGIN_VERSION="+strconv.Itoa(version), "-o", "plugin.so")
	for _, f := range files {
		path := filepath.Join(work, f.path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, f.text, 0o666)); err != nil {
			return err
		}
		if isPart(f.path) {
			args = append(args, f.path)
		}
	}
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Dir = work
	if said, err := cmd.CombinedOutput(); err != nil {
		return &BuildError{Compiler: compiler, Output: string(bytes.TrimSpace(said))}
	}
	return os.Rename(filepath.Join(work, "plugin.so"), plugin)
}

// isPart tells of the sources that are compiled.
func isPart(path string) bool {
	if filepath.Ext(path) != ".c" {
		return false
	}
	for _, name := range runtimeParts {
		if path == filepath.Join("runtime", name) {
			return true
		}
	}
	return strings.HasPrefix(path, filepath.Join("qemu", "plugin"))
}

func findCompiler() string {
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Command is the command that runs a program, which knows itself by that name, and
// records it to a file, of at most that many bytes, 0 for no limit. The program sees
// the environment of this process.
func Command(emulator, plugin, recording string, mostBytes uint64, name, program string, args []string) *exec.Cmd {
	ours := []string{"LD_PRELOAD=" + plugin, "STACKGLASS_TRACE=" + recording, "STACKGLASS_TRACE_BYTES=" + strconv.FormatUint(mostBytes, 10)}
	line := []string{"-plugin", plugin, "-0", name}
	env := os.Environ()
	for _, setting := range ours {
		name, _, _ := strings.Cut(setting, "=")
		// QEMU's own environment is the program's, but for what it is told to
		// change.
		if value, there := os.LookupEnv(name); there {
			line = append(line, "-E", name+"="+value)
		} else {
			line = append(line, "-U", name)
		}
	}
	cmd := exec.Command(emulator, append(append(line, "--", program), args...)...)
	cmd.Env = append(env, ours...)
	return cmd
}
