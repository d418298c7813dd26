import LarderServer

/// What `--help` prints.
enum Help {
    static let version = MockBackend.version

    static let text = """
        larder-server — a mobile backend for local work and tests

        USAGE
          larder-server [options]

        WHERE
          --host ADDRESS          address to listen on            127.0.0.1
          --port PORT             0 takes any that is free        8080
          --loops N               event loops, one thread each    1

        WHAT IT SERVES
          --fixtures DIR          a directory of fixtures         ./Fixtures
          --seed N                a world made up from a seed instead; with it:
          --people N --posts N --conversations N --messages N --transfers N
          --database PATH         keep the state in a SQLite file (default: in memory)
          --no-power-loss-safety  commits survive a crash of the process only; faster
          --check                 look at the database's schema and ledger, then exit

        LIMITS
          --rate-limit N          requests a minute for each caller   off
          --head-limit BYTES      request head                        16384
          --body-limit BYTES      request body                        1048576
          --connection-limit N                                        10000
          --head-timeout S        for a request to arrive             10
          --idle-timeout S        between requests                    75
          --token-ttl S           access tokens                       3600
          --tombstone-retention S what the change feed remembers      604800

        BAD DAYS
          --profile NAME          a network journey: 3g, train, tunnel, offline, …
          --faults FILE           a script of timed steps, in JSON
          --clock SPEC            real, frozen, frozen@2026-01-01T00:00:00Z, x60
          --world-seed N          decides everything random; the same runs again
          --journal N             exchanges kept for questions         4096
          --no-journal            keep none
          --worlds N              worlds at most                       2000
          --snapshots DIR         where snapshots may be kept in files
          --control-token TOKEN   what the control plane wants to be shown
          --control-origin ORIGIN a page of that origin may steer too; may be repeated
          --no-control            no control plane over HTTP

        ASK A RUNNING SERVER  (larder-server COMMAND [--server URL] [--world ID] [--json])
          worlds, clock, faults, profile, gates, held, journal, verify, wait, conduct,
          act, phantoms, changes, ledger, repro, replay; larder-server help COMMAND explains one

        LOG
          --log text|json         one line a request on standard error
          --quiet                 nothing but errors

        OTHER
          --check-health URL      exit 0 if a server answers there (for containers)
          --no-response-cache     build every reply anew (for measurements)
          --poll                  wait with poll(2) instead of epoll
          --version, --help

        A wrong option ends with one line and exit code 2. SIGTERM and SIGINT stop in order.
        """
}
