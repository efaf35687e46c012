package plugins

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/mapmatched/mmplug/mapmatched"
)

// checkExecutable finds out why a file would not run, before it is tried.
func checkExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := runnable(path, info); err != nil {
		return failAs(mapmatched.KindInvalid, "open", "", err)
	}
	return nil
}

func runnable(path string, info os.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty", path)
	case !executable(info.Mode()):
		return fmt.Errorf("%s has the mode %04o and cannot be run: chmod +x it", path, info.Mode().Perm())
	}
	system, arch, err := platform(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case system != "" && system != runtime.GOOS:
		return fmt.Errorf("%s is a program for %s/%s, this machine is %s/%s: build it for that", path, system, arch, runtime.GOOS, runtime.GOARCH)
	case arch != "" && arch != runtime.GOARCH:
		return fmt.Errorf("%s is built for the architecture %s, this machine is %s: build it for that", path, arch, runtime.GOARCH)
	}
	return nil
}

// errNoProgram says that a file is neither a program nor a script.
var errNoProgram = errors.New("it is neither a program nor a script with #! at its beginning")

// platform reads the system and architecture of a program, both "" for a
// script and system "" where the form of the file does not tell.
func platform(path string) (system, arch string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = f.Close() }() // only read
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil {
		return "", "", errNoProgram
	}
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		return "", "", nil
	case string(head) == elf.ELFMAG:
		file, err := elf.NewFile(f)
		if err != nil {
			return "", "", fmt.Errorf("it is damaged: %w", err)
		}
		if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
			system = "linux"
		}
		return system, elfArch(file), nil
	case bytes.HasPrefix(head, []byte("MZ")):
		file, err := pe.NewFile(f)
		if err != nil {
			return "", "", fmt.Errorf("it is damaged: %w", err)
		}
		arch = map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64", pe.IMAGE_FILE_MACHINE_I386: "386"}[file.Machine]
		return "windows", arch, nil
	case bytes.Equal(head, []byte{0xca, 0xfe, 0xba, 0xbe}): // several architectures in one file
		return "darwin", "", nil
	}
	file, err := macho.NewFile(f)
	if err != nil {
		return "", "", errNoProgram
	}
	return "darwin", map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[file.Cpu], nil
}

// elfArch names an architecture as Go does, or as the file does where Go has
// no name.
func elfArch(file *elf.File) string {
	little := file.Data == elf.ELFDATA2LSB
	switch file.Machine {
	case elf.EM_X86_64:
		return "amd64"
	case elf.EM_AARCH64:
		return "arm64"
	case elf.EM_386:
		return "386"
	case elf.EM_ARM:
		return "arm"
	case elf.EM_RISCV:
		return "riscv64"
	case elf.EM_S390:
		return "s390x"
	case elf.EM_LOONGARCH:
		return "loong64"
	case elf.EM_PPC64:
		if little {
			return "ppc64le"
		}
		return "ppc64"
	}
	return file.Machine.String()
}
