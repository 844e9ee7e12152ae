package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Init is the main function of a node's first process, which has namespaces of its own. It
// waits for the end of its standard input, which means that its network is attached. Then it
// runs containerd, the kubelet, kube-proxy and possibly the network plugin until one of them
// ends. The kernel ends all other processes of the node with this one.
func Init(o Node) error {
	if err := syscall.Sethostname([]byte(o.Name)); err != nil {
		return err
	}
	if err := mountFileSystems(o.Dir); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	if err := o.writeConfigs(); err != nil {
		return err
	}
	containerd, err := startProgram(exec.Command(o.programPath("containerd")), filepath.Join(o.Dir, "containerd.log"))
	if err != nil {
		return err
	}
	if err := awaitSocket("/run/containerd/containerd.sock"); err != nil {
		return err
	}
	named := map[int]string{containerd: "containerd"}
	if o.Enforced { // before the kubelet starts a pod
		plugin, err := startProgram(exec.Command(o.programPath("enforcer"), o.Name, o.PluginKubeconfig, podRange(o.Index)), filepath.Join(o.Dir, "network-plugin.log"))
		if err != nil {
			return err
		}
		named[plugin] = "network plugin"
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	kubelet, err := startProgram(exec.Command(self, append([]string{"kubelet"}, o.buildKubeletArgs()...)...), filepath.Join(o.Dir, "kubelet.log"))
	if err != nil {
		return err
	}
	proxy, err := startProgram(exec.Command(self, append([]string{"kube-proxy"}, o.buildProxyArgs()...)...), filepath.Join(o.Dir, "kube-proxy.log"))
	if err != nil {
		return err
	}
	named[kubelet], named[proxy] = "kubelet", "kube-proxy"
	return reapProcesses(named)
}

// mountFileSystems gives the node a file system of its own where its programs write: /etc, /opt and /var
// with changes in dir, an empty /run, and a /proc of its own processes.
func mountFileSystems(dir string) error {
	// No mount propagates to the machine, but the kubelet's mounts propagate to containerd.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, path := range []string{"etc", "opt", "var"} {
		upper, work := filepath.Join(dir, path), filepath.Join(dir, ".work-"+path)
		if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
			return err
		}
		options := fmt.Sprintf("lowerdir=/%s,upperdir=%s,workdir=%s", path, upper, work)
		if err := unix.Mount("overlay", "/"+path, "overlay", 0, options); err != nil {
			return fmt.Errorf("mount an overlay over /%s: %w", path, err)
		}
	}
	// containerd's snapshots are overlays, and an overlay cannot be a layer of another overlay.
	for _, path := range []string{"containerd", "kubelet"} {
		source, target := filepath.Join(dir, path), filepath.Join("/var/lib", path)
		if err := errors.Join(os.MkdirAll(source, 0o755), os.MkdirAll(target, 0o755)); err != nil {
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
}

// startProgram starts a program of the node, and returns its process ID.
func startProgram(cmd *exec.Cmd, log string) (int, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// reapProcesses waits for ended processes, whose parent is now this first process, until one of the
// named programs ends.
func reapProcesses(named map[int]string) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if name, ok := named[pid]; ok {
			return fmt.Errorf("%s has ended: exit status %d, signal %d", name, status.ExitStatus(), status.Signal())
		}
	}
}

func awaitSocket(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd has not created %s", path)
		case <-tick.C:
		}
	}
}

// kernelParameters are the parameters of the whole machine that a kubelet sets.
var kernelParameters = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// HideKernelParameters replaces the machine's kernel parameters by copies, for the program that
// this process executes next. Only that program gets the copies: mounts over files in a
// container's /proc would prevent user namespaces.
func HideKernelParameters() error {
	runtime.LockOSThread() // the thread that becomes the program
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/proc", "", unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, name := range kernelParameters {
		path := filepath.Join("/proc/sys", name)
		value, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		dir := filepath.Join("/run/kernel", filepath.Dir(name))
		copied := filepath.Join("/run/kernel", name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(copied, value, 0o600)); err != nil {
			return err
		}
		if err := unix.Mount(copied, path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}
