package run

import (
	"context"
	"errors"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// startPatience is the time limit for etcd to become ready.
const startPatience = time.Minute

func runEtcd(args []string) error {
	config, err := buildEtcdConfig(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case <-server.Server.StopNotify():
		return errors.New("etcd stopped while it was starting")
	case <-time.After(startPatience):
		return errors.New("etcd did not become ready")
	case <-ctx.Done():
		return nil
	}
	select {
	case err := <-server.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}

func buildEtcdConfig(args []string) (*embed.Config, error) {
	var clients, peers, members, caFile, certFile, keyFile string
	config := embed.NewConfig()
	flags := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	flags.StringVar(&config.Dir, "data-dir", "", "directory of the data")
	flags.StringVar(&clients, "client-address", "", "host:port for clients")
	flags.StringVar(&peers, "peer-address", "", "host:port for peers")
	flags.StringVar(&config.Name, "name", "sandbox", "the member's name")
	flags.StringVar(&members, "members", "", "NAME=URL of the members, separated by commas; this one alone if empty")
	flags.StringVar(&caFile, "ca-file", "", "the CA of clients and peers")
	flags.StringVar(&certFile, "cert-file", "", "the member's certificate")
	flags.StringVar(&keyFile, "key-file", "", "the member's key")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}

	config.ListenClientUrls = []url.URL{{Scheme: "https", Host: clients}}
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = []url.URL{{Scheme: "https", Host: peers}}
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	if members != "" {
		config.InitialCluster = members
	}
	tls := transport.TLSInfo{CertFile: certFile, KeyFile: keyFile, TrustedCAFile: caFile, ClientCertAuth: true}
	config.ClientTLSInfo, config.PeerTLSInfo = tls, tls

	// The data must survive the end of the processes, but not a crash of the machine.
	config.UnsafeNoFsync = true
	if members == "" {
		// A single member elects itself after one election timeout: with the
		// defaults, that is most of the start time.
		config.TickMs, config.ElectionMs = 10, 100
	}
	config.QuotaBackendBytes = 8 << 30
	config.EnableGRPCGateway = false
	// Only etcd's command line sets this default. Without it, etcd logs every request as slow.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	config.LogLevel = "warn"
	return config, nil
}
