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

	"croft.dev/croft/internal/catalog"
)

// patience is for people who wait at a terminal, some of them without a cloud.
const patience = 5 * time.Second

// defaultRegion is asked where nothing says another.
const defaultRegion = "us-east-1"

// Decode asks AWS what an encoded authorization message says, with the caller's own
// credentials. It implements catalog.Decode: by the credentials, the region and the endpoint
// that the aws command would use.
func Decode(ctx context.Context, encoded string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := config.LoadDefaultConfig(ctx, config.WithDefaultRegion(defaultRegion), config.WithRetryMaxAttempts(1))
	if err != nil {
		return "", err
	}
	// The SDK's own error lists all the places where it has looked for some.
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
