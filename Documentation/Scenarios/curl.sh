#!/usr/bin/env bash
# What curl can do by itself: retries with Retry-After, an idempotency key, an ETag file.
#
#   larder-server scenarios run retry-after-seconds lost-reply unchanged-resource -- ./curl.sh
set -euo pipefail

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
request() {
  ${LARDER_CA:+env CURL_CA_BUNDLE="$LARDER_CA"} curl --silent --show-error --fail --retry 6 --retry-all-errors \
    --connect-timeout 3 --max-time 15 \
    --header "Authorization: Bearer $LARDER_TOKEN" --header "Content-Type: application/json" "$@"
}

case $LARDER_TASK in
  read)
    for _ in $(seq "$LARDER_ROUNDS"); do
      request --etag-save "$directory/etag" --etag-compare "$directory/etag" --output "$directory/body" \
        "$LARDER_URL$LARDER_PATH"
      held=$(sed -E 's/.*"id":"([^"]+)".*"version":([0-9]+).*/{"\1":\2}/' "$directory/body")
      request --data "{\"as\":\"$LARDER_HANDLE\",\"partial\":true,\"held\":$held}" "$LARDER_REPORT" >/dev/null
    done
    ;;
  transfer)
    # The same key in every attempt: curl repeats the request as it is.
    money="{\"minorUnits\":$LARDER_AMOUNTS,\"currency\":\"$LARDER_CURRENCY\"}"
    request --header "Idempotency-Key: \"$(date +%s%N)\"" "$LARDER_URL/v1/transfers" \
      --data "{\"fromAccountId\":\"$LARDER_FROM\",\"toAccountId\":\"$LARDER_TO\",\"amount\":$money}"
    ;;
  like) request --request PUT "$LARDER_URL$LARDER_PATH" ;;
  *) echo "curl.sh has no task $LARDER_TASK" ;;
esac
