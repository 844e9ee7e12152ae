package iam

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"croft.dev/croft/internal/diagnose/catalog"
)

// patience limits the call: people wait for it at a terminal, some of them offline.
const patience = 5 * time.Second

// defaultRegion is used if no region is configured.
const defaultRegion = "us-east-1"

// Decode asks AWS to decode an encoded authorization message. It uses the credentials, the
// region and the endpoint that the aws command would use. It implements catalog.Decode.
func Decode(ctx context.Context, encoded string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := config.LoadDefaultConfig(ctx, config.WithDefaultRegion(defaultRegion), config.WithRetryMaxAttempts(1))
	if err != nil {
		return "", err
	}
	// The SDK's own error lists all places where it has looked for credentials.
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		return "", errors.New("there are no AWS credentials")
	}
	out, err := sts.NewFromConfig(c).DecodeAuthorizationMessage(ctx, &sts.DecodeAuthorizationMessageInput{EncodedMessage: aws.String(encoded)})
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return "", fmt.Errorf("%s: %s", refused.ErrorCode(), refused.ErrorMessage())
	}
	if err != nil {
		return "", err
	}
	return aws.ToString(out.DecodedMessage), nil
}

var _ catalog.Decode = Decode
