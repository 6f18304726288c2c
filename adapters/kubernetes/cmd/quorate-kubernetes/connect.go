package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/client"
)

const (
	// quoratePatience bounds a call to Quorate: the loop tries again by itself, and tells users meanwhile.
	quoratePatience = 10 * time.Second
	// callsPerSecond and burst are those of calls to the API server. A thousand pods that are opened at once need two
	// calls each.
	callsPerSecond, burst = 200, 400
)

type connection struct {
	servers                            list
	authority, certificate, key, token string
}

func (c *connection) open() (*client.Client, error) {
	if len(c.servers.values) == 0 {
		return nil, errors.New("server: name at least one server of Quorate")
	}
	options := []client.Option{
		client.WithPatience(quoratePatience),
		client.WithNotice(func(err error) { slog.Debug("a call to Quorate is tried again", "error", err) }),
	}
	if c.authority != "" || c.certificate != "" {
		secure, err := c.tls()
		if err != nil {
			return nil, err
		}
		options = append(options, client.WithTLS(secure))
	}
	if c.token != "" {
		options = append(options, client.WithTokenFile(c.token))
	}
	opened, err := client.New(c.servers.values, options...)
	if err != nil {
		return nil, fmt.Errorf("connecting to Quorate: %w", err)
	}
	return opened, nil
}

// tls reads the certificate again for each connection, so that a renewed one is used.
func (c *connection) tls() (*tls.Config, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.authority != "" {
		text, err := os.ReadFile(c.authority)
		if err != nil {
			return nil, fmt.Errorf("ca-file: %w", err)
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca-file: %s has no certificate", c.authority)
		}
	}
	if (c.certificate == "") != (c.key == "") {
		return nil, errors.New("cert-file and key-file need each other")
	}
	if c.certificate != "" {
		load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.certificate, c.key)
			if err != nil {
				return nil, fmt.Errorf("cert-file: %w", err)
			}
			return &pair, nil
		}
		if _, err := load(nil); err != nil {
			return nil, err
		}
		secure.GetClientCertificate = load
	}
	return secure, nil
}

func loadConfig(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	} else {
		config, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.QPS, config.Burst = callsPerSecond, burst
	return config, nil
}
