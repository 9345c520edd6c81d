#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills runs of recurring jobs, and schedulers that open and report them, and looks for what was lost or doubled.

    tools/build && bench/job_kill.py --runs 1000 --seed 1

Each machine has a virtual V100 and a store, with a new job after each ten runs. A run is `wattgov job run` around a
measured job, killed as live_kill.py kills `wattgov train`, half of the times when the store is next written to; or
three schedulers at once, whose `job next` and `job report` are killed and called again until they are answered, and
which forget runs, are late and change their minds; or both. Then `job run` must work at once, the next question must
take back what is still open when its lease has passed, and the export must be what an account of our own expects: every
answer kept with its very numbers, nothing that nobody told, no fact changed, none left out, each recurrence served in
its turn. Prints the counts and the seed; status 1 if anything was lost, doubled or left.
"""
import collections
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from live_kill import FAULTS, Machine, ORIGINAL_W, VICTIMS, each_run, find_left, inject, parse_args, strike

KINDS = ("run", "run", "schedulers", "run and schedulers")
SCHEDULERS = 3
RUNS_OF_A_JOB = 10
ORDERS = (1, 3)  # of a scheduler in a run: from, to
WRITE_S = 0.001  # what follows upon a write is over in about so long
LEASES_S = (0.3, 1.0)
LEASE_S = 1.0  # the job's, the shortest there is; no other is longer
ATTEMPTS_MAX = 20
MODELS = ("Scheduled A", "Scheduled B")  # what schedulers call their GPUs: so their runs are told from those of job run
SIZES = "12,16,24,32,48"
TARGET, MOST_EPOCHS = 84, 6
IN_VAIN = ("crashed", "returned", "expired")


class Account:
    """What the facts of an export add up to. Says each that cannot follow what came before it."""

    def __init__(self):
        self.lines = []
        self.runs = {}
        self.waiting = set()  # recurrences that need another attempt
        self.next_recurrence = 0
        self.revived = 0
        self.wrong = []

    def read(self, lines):
        """Takes in a whole export; the runs that are new."""
        known = set(self.runs)
        if lines[:len(self.lines)] != self.lines:
            self.wrong.append("facts that were known have changed or gone")
        for number, line in enumerate(lines[len(self.lines):], len(self.lines) + 1):
            fact = json.loads(line)
            if fact["fact"] != number:
                self.wrong.append(f"fact {fact['fact']} stands in the place of {number}")
            self.take(fact, f"fact {number}")
        self.lines = lines
        return [run for run in self.runs.values() if run["run"] not in known]

    def of(self, recurrence):
        return [run for run in self.runs.values() if run["recurrence"] == recurrence and not run["is_survey"]]

    def may_retry(self, recurrence):
        states = collections.Counter(run["state"] for run in self.of(recurrence))
        return not states["reached"] and not states["open"] and states["stopped"] + states["failed"] < ATTEMPTS_MAX

    def take(self, fact, where):
        kind, run = fact["kind"], self.runs.get(fact["run"])
        if (kind == "started") != (run is None):
            self.wrong.append(f"{where}: {kind}, of a run that is {'not known' if run is None else 'known'}")
            return
        if kind == "started":
            self.start(fact, where)
            return
        if run["state"] != ("expired" if kind == "revived" else "open"):
            self.wrong.append(f"{where}: {kind}, of run {fact['run']} that is {run['state']}")
        if kind == "epoch":
            if run["epochs"] and fact["epoch"] <= run["epochs"][-1][0]:
                self.wrong.append(f"{where}: an epoch of run {fact['run']} told twice")
            run["epochs"].append((fact["epoch"], fact["metric"]))
        elif kind == "profiled":
            if run["is_profiled"]:
                self.wrong.append(f"{where}: run {fact['run']} profiled twice")
            run["is_profiled"] = True
        elif kind == "revived":
            run["state"] = "open"
            self.revived += 1
            self.waiting.discard(run["recurrence"])
        else:
            run["state"] = "expired" if kind == "taken_back" else fact["state"]
            run["end"] = fact if kind == "ended" else None
            if run["state"] == "reached" and not run["is_survey"]:
                self.waiting.discard(run["recurrence"])
            elif self.may_retry(run["recurrence"]):
                self.waiting.add(run["recurrence"])

    def start(self, fact, where):
        recurrence = fact["recurrence"]
        states = [run["state"] for run in self.of(recurrence)]
        turn = min(self.waiting) if self.waiting else self.next_recurrence
        # `job run` goes on with the recurrence that it has begun.
        is_own = fact["gpu_model"] not in MODELS and recurrence < self.next_recurrence and self.may_retry(recurrence)
        if recurrence != turn and not is_own:
            self.wrong.append(f"{where}: recurrence {recurrence} is served, and it is the turn of {turn}")
        if fact["attempt"] != states.count("stopped") + states.count("failed"):
            self.wrong.append(f"{where}: attempt {fact['attempt']} of recurrence {recurrence} after {states}")
        self.runs[fact["run"]] = dict(fact, state="open", epochs=[], is_profiled=False, end=None)
        self.waiting.discard(recurrence)
        self.next_recurrence = max(self.next_recurrence, recurrence + 1)

    def open(self):
        return [run for run in self.runs.values() if run["state"] == "open"]

    def check_shown(self, shown):
        ends = [run["end"] for run in self.runs.values() if run["end"]]
        reached = {run["recurrence"] for run in self.runs.values() if run["state"] == "reached" and not run["is_survey"]}
        expected = {"recurrences": self.next_recurrence, "completed": len(reached), "open_runs": len(self.open()),
                    "lost_runs": sum(run["state"] in IN_VAIN for run in self.runs.values()),
                    "completed_cost_j": sum(end["cost_j"] for end in ends if self.runs[end["run"]]["recurrence"] in reached),
                    **{key: sum(end[key] for end in ends) for key in ("energy_j", "time_s", "cost_j")}}
        for key, value in expected.items():
            if not math.isclose(shown[key], value, rel_tol=1e-9):
                self.wrong.append(f"job show: {key} is {shown[key]}, and the facts add up to {value}")


def is_unstarted(run):
    """The policy would not let it do one epoch: ended by the question that has opened it."""
    return run["state"] == "stopped" and run["end"]["epochs"] == run["end"]["time_s"] == 0


class Scheduler:
    """Opens runs and reports them. Calls are killed at random, and made again until one was answered."""

    def __init__(self, machine, chance):
        self.machine = machine
        self.chance = chance
        self.counts = collections.Counter()
        self.orders = {}  # by run: what `next` has said
        self.epochs = collections.defaultdict(dict)  # by run: metric of each epoch that was told
        self.answered = collections.defaultdict(set)  # by run: epochs that were answered
        self.reports = {}  # by run: how it ended, as was told
        self.acknowledged = {}  # by run: the receipt
        self.late = []  # runs that nobody reports, so far
        self.wrong = []
        self.error = None

    def draw_death(self):
        """(when a call is killed, whether by the clock): half are not, and half of the others when the store is
        written to."""
        luck, after_s, behind_s = self.chance.random(), self.chance.uniform(0, self.machine.longest_s), \
            self.chance.uniform(0, WRITE_S)

        def at_write(child):
            self.machine.wait_for_write(child, 0.0001)
            time.sleep(behind_s)
        if luck < 0.5:
            return None, False
        return (at_write, False) if luck < 0.75 else (lambda child: time.sleep(after_s), True)

    def call(self, *words, statuses=(0,), may_die=True):
        """(the answer, whether a call before it was killed or its answer lost on its way)"""
        was_lost = False
        for tries_left in range(3, -1, -1):
            may_die = may_die and tries_left > 0
            death, is_timed = self.draw_death() if may_die else (None, False)
            status, said = self.machine.call(words, death)
            if is_timed:
                self.machine.learn_longest(status != -signal.SIGKILL)
            if said.endswith("}\n") and may_die and self.chance.random() < 0.1:
                self.counts[f"{words[0]} answer lost"] += 1
                was_lost = True
                continue
            if said.endswith("}\n"):  # an answer is one, also of a process that died behind it
                self.counts["answered"] += 1
                if status not in (*statuses, -signal.SIGKILL):
                    self.wrong.append(f"{words}: status {status}")
                return json.loads(said), was_lost
            if status == -signal.SIGKILL:
                self.counts[f"{words[0]} killed"] += 1
                was_lost = True
            else:
                self.wrong.append(f"{words}: status {status}: {said}")
                break
        raise RuntimeError(f"{words} were never answered: {self.wrong}")

    def next(self, may_die=True):
        words = ["next", self.machine.name, "--gpu-name", self.chance.choice(MODELS), "--gpus", "2", "--lease",
                 f"{self.chance.choice(LEASES_S)}s"]
        if self.chance.random() < 0.2 and may_die:
            words.append("--survey")
        order, _ = self.call(*words, may_die=may_die)
        if order["run"] in self.orders:
            self.wrong.append(f"run {order['run']} was given twice")
        self.orders[order["run"]] = order
        return order

    def report(self, run, may_die=True):
        """Tells the end, that was decided before."""
        end = self.reports[run]
        words = ["report", self.machine.name, str(run), f"--{end['state']}", "--epochs", repr(end["epochs"]), "--energy",
                 repr(end["energy_j"]), "--time", repr(end["time_s"])]
        if end["metric"] is not None:
            words += ["--metric", repr(end["metric"])]
        receipt, was_lost = self.call(*words, may_die=may_die)
        if receipt["is_repeat"] and not was_lost and run not in self.acknowledged:
            self.wrong.append(f"the first report of run {run} was taken for a repeat")
        if not receipt["is_repeat"] and run in self.acknowledged:
            self.wrong.append(f"run {run} was reported a second time, and that was news")
        self.counts["unanswered reports that were kept"] += receipt["is_repeat"] and run not in self.acknowledged
        self.acknowledged[run] = receipt
        return words

    def decide_end(self, run, state, epochs):
        """What will be told of a run, and never anything else."""
        is_known = bool(self.epochs[run]) and self.chance.random() < 0.3
        self.reports[run] = {"state": state, "epochs": epochs, "energy_j": self.chance.uniform(100, 900),
                             "time_s": self.chance.uniform(1, 9), "metric": self.chance.uniform(60, 90) if is_known else None}

    def train(self, order):
        """The epochs of a run; how it ended, and after how many."""
        run, planned = order["run"], self.chance.choice(("reached", "reached", "failed", "stopped", "crashed", "returned"))
        if order["kind"] == "survey":
            return (planned if planned in IN_VAIN else "reached"), self.chance.uniform(0.05, 0.9)
        count = self.chance.randint(1, 3)
        for epoch in range(1, count + 1):
            metric = self.chance.uniform(TARGET, 90) if planned == "reached" and epoch == count else self.chance.uniform(60, 83)
            self.epochs[run][epoch] = metric
            answer, _ = self.call("report", self.machine.name, str(run), "--epoch", str(epoch), "--metric", repr(metric),
                                  statuses=(0, 3))
            self.answered[run].add(epoch)
            if (answer["answer"] == "reached") != (metric >= TARGET):
                self.wrong.append(f"run {run} epoch {epoch}: {answer['answer']} at {metric}")
            if answer["answer"] == "stop":
                return "stopped", epoch
        return planned, count

    def work(self):
        try:
            for _ in range(self.chance.randint(*ORDERS)):
                order = self.next()
                fate = self.chance.random()
                if fate < 0.1:  # dies with what it was given
                    self.counts["forgotten"] += 1
                    continue
                self.decide_end(order["run"], *self.train(order))
                if fate < 0.25:
                    self.late.append(order["run"])
                    continue
                words = self.report(order["run"])
                if fate < 0.6:
                    self.report(order["run"])
                if fate > 0.9:
                    self.change_mind(words)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error  # of a thread: told by whoever waits for it

    def change_mind(self, words):
        other = words[:words.index("--time") + 1] + ["77.5"]
        status, said = self.machine.call(other, None)
        self.counts["other report refused"] += 1
        if status != 1:
            self.wrong.append(f"another report of the same run was not refused: {status} {said}")

    def check(self, runs):
        """Whether the account's runs are what was told and answered."""
        for number, order in self.orders.items():
            run = runs.get(number)
            if run is None:
                self.wrong.append(f"run {number} was given, and is lost")
                continue
            for key in ("recurrence", "attempt", "batch_size", "gpu_model"):
                if run[key] != order[key]:
                    self.wrong.append(f"run {number} was given with {key} {order[key]}, and has {run[key]}")
            if run["is_survey"] != (order["kind"] == "survey"):
                self.wrong.append(f"run {number} was given as a {order['kind']}")
            told, kept = self.epochs[number], dict(run["epochs"])
            if not self.answered[number] <= set(kept) or any(told.get(epoch) != metric for epoch, metric in kept.items()):
                self.wrong.append(f"run {number}: epochs {told} were told, {kept} are kept")
            self.check_end(number, run)

    def check_end(self, number, run):
        if run["end"] is None:
            if number in self.acknowledged:
                self.wrong.append(f"run {number}: its end was acknowledged, and is lost")
            return
        if number not in self.reports or number in self.late:
            self.wrong.append(f"run {number}: an end that nobody told: {run['end']}")
            return
        told = self.reports[number]
        for key in ("state", "epochs", "energy_j", "time_s", "metric"):
            value = told[key]
            if key == "metric" and value is None:
                value = run["epochs"][-1][1] if run["epochs"] else None
            if run["end"][key] != value:
                self.wrong.append(f"run {number}: {key} was told as {value}, and is {run['end'][key]}")
        if number in self.acknowledged and self.acknowledged[number]["cost_j"] != run["end"]["cost_j"]:
            self.wrong.append(f"run {number}: acknowledged with other costs")


class JobMachine(Machine):
    """A machine with one job in a store of its own."""

    def __init__(self, build):
        super().__init__(build)
        self.store = os.path.join(self.folder.name, "jobs.db")
        self.accounts = []
        self.runs = 0
        self.longest_s = 0.03  # a call takes about so long
        self.lock = threading.Lock()

    def begin(self):
        """A run begins; the account of its job."""
        if self.runs % RUNS_OF_A_JOB == 0:
            self.create()
        self.runs += 1
        return self.accounts[-1]

    def create(self):
        self.accounts.append(Account())
        self.name = f"job{len(self.accounts)}"
        self.job("create", self.name, "--batch-sizes", SIZES, "--default", "32", "--target", f"f1>={TARGET}", "--max-epochs",
                 str(MOST_EPOCHS), "--lease", f"{LEASE_S}s")

    def job(self, *words):
        done = self.run(self.program, "job", *words, "--store", self.store)
        if done.returncode != 0:
            raise SystemExit(f"job_kill.py: {words}: {done.stderr}")
        return done.stdout

    def call(self, words, death):
        """(exit status, standard output); the errors when there is none. `death` says when it is killed: None, or a
        function that returns then."""
        child = subprocess.Popen([self.program, "job", *words, "--json", "--store", self.store], env=self.environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if death is not None:
            death(child)
            child.kill()
        said, errors = child.communicate(timeout=60)
        return child.returncode, said or errors

    def written(self):
        """What changes with each write to the store; its log is made empty and removed by who opens and closes it."""
        try:
            status = os.stat(self.store + "-wal")
        except FileNotFoundError:
            return None
        return (status.st_mtime_ns, status.st_size) if status.st_size > 0 else None

    def wait_for_write(self, process, pause_s):
        """Until the store is written to, or the process has ended."""
        before = self.written()
        while self.written() in (before, None) and process.poll() is None:
            time.sleep(pause_s)

    def learn_longest(self, was_answered):
        """Half of the calls that are killed should get as far as their commit, however fast this machine is."""
        with self.lock:
            self.longest_s = min(2, max(0.002, self.longest_s * (0.9 if was_answered else 1.12)))

    def start(self, scale, number, timeout="5s"):
        """(`wattgov job run`, the file with what it says)"""
        said = open(os.path.join(self.folder.name, "said"), "w+", encoding="utf-8")
        words = [self.program, "job", "run", self.name, "--store", self.store, "--json", "--timeout", timeout, "--profile",
                 "warmup=50ms,measure=100ms", "--", self.tool("wattgov-vload"), "squad", "--gpu", "V100", "--batch-size",
                 "{batch_size}", "--time-scale", str(scale), "--samples-per-epoch", "1280", "--print-every", "1000000", "--seed",
                 f"{number}{{run}}"]
        return subprocess.Popen(words, env=self.environment, stdout=said, stderr=said), said

    def read(self):
        return self.accounts[-1].read(self.job("export", self.name).splitlines()[1:])


def take_said(file):
    """(the summary that `job run` has written, or None; all of its words)"""
    file.seek(0)
    text = file.read()
    file.close()
    lines = [line for line in text.splitlines() if line.startswith('{"schema":"wattgov.job.run/1"') and line.endswith("}")]
    return (json.loads(lines[-1]) if lines else None), text


def check_summary(summary, runs):
    """What `job run` says of itself, against its runs: None, or what differs."""
    done = [run for run in runs if not is_unstarted(run)]
    energy_j = sum(run["end"]["energy_j"] for run in done)
    is_same = math.isclose(summary["energy_j"], energy_j, rel_tol=1e-9) and \
        summary["attempts"] == sum(not run["is_survey"] for run in done) and \
        summary["surveys"] == sum(run["is_survey"] for run in done) and \
        summary["reached"] == any(run["state"] == "reached" and not run["is_survey"] for run in done)
    return None if is_same else f"job run said {summary}, and its runs are {runs}"


def check_job_run(machine, process, said, victim, fault, runs):
    """Says what is wrong with the runs of `job run`, once it is gone."""
    wrong = machine.accounts[-1].wrong
    summary, text = take_said(said)
    is_open = [run["run"] for run in runs if run["state"] == "open"]
    wrong += [f"epochs of a run are missing: {run}" for run in runs if run["end"] and not run["is_survey"] and
              [epoch for epoch, _ in run["epochs"]] != list(range(1, run["end"]["epochs"] + 1))]
    if process.returncode == -signal.SIGKILL:
        if len(is_open) > 1:
            wrong.append(f"one job run has left the runs {is_open} open")
    elif is_open:
        wrong.append(f"job run has left the runs {is_open} open: {text}")
    if summary is not None and not is_open:
        note = check_summary(summary, runs)
        if note is not None:
            wrong.append(note)
    elif summary is not None:
        wrong.append(f"job run has told its end, and the runs {is_open} are open: {text}")
    if victim in ("nobody", "guard", "trainer") and fault is None and process.returncode != 0:
        wrong.append(f"{victim}: job run ended with {process.returncode}: {text}")


def run_at_once(machine, number):
    """`job run` works on, whatever has happened before."""
    process, said = machine.start(20000, number)
    status = process.wait()
    runs = [run for run in machine.read() if run["gpu_model"] not in MODELS]
    check_job_run(machine, process, said, "nobody", None, runs)
    if status == 0 and not any(run["state"] == "reached" and not run["is_survey"] for run in runs):
        machine.accounts[-1].wrong.append(f"job run says that it has reached the target: {runs}")
    if machine.limit_w() != ORIGINAL_W:
        machine.accounts[-1].wrong.append(f"the next job run has left {machine.limit_w()} W")


def take_back(machine, last):
    """All leases have passed: the next question takes back what is open, and serves what waits."""
    account = machine.accounts[-1]
    is_open = account.open()
    order = last.next(may_die=False)
    if order["taken_back"] != len(is_open):
        account.wrong.append(f"{order['taken_back']} of {len(is_open)} open runs were taken back")
    while True:
        last.decide_end(order["run"], "reached", 1)
        last.report(order["run"], may_die=False)
        machine.read()
        if not account.waiting:
            break
        order = last.next(may_die=False)
    if account.open():
        account.wrong.append(f"runs that stay open: {account.open()}")
    return len(is_open)


def schedule(machine, name):
    """Schedulers at work: (they, their threads)"""
    schedulers = [Scheduler(machine, random.Random(f"{name}/{i}")) for i in range(SCHEDULERS)]
    threads = [threading.Thread(target=scheduler.work) for scheduler in schedulers]
    for thread in threads:
        thread.start()
    return schedulers, threads


def check_schedulers(machine, schedulers, new, counts):
    runs, wrong = machine.accounts[-1].runs, machine.accounts[-1].wrong
    for scheduler in schedulers:
        scheduler.check(runs)
        if scheduler.error is not None:
            wrong.append(f"a scheduler ended: {scheduler.error!r}")
        wrong += scheduler.wrong
        scheduler.wrong = []
    given = [number for scheduler in schedulers for number in scheduler.orders]
    if len(given) != len(set(given)):
        wrong.append(f"a run was given twice: {sorted(given)}")
    lost = [run for run in new if run["gpu_model"] in MODELS and run["run"] not in set(given) and not is_unstarted(run)]
    killed = sum(scheduler.counts["next killed"] + scheduler.counts["next answer lost"] for scheduler in schedulers)
    if len(lost) > killed:
        wrong.append(f"{len(lost)} runs were opened that nobody was given, by {killed} lost questions")
    wrong += [f"an end that nobody told: {run}" for run in lost if run["end"] is not None]
    counts["runs of unanswered questions"] += len(lost)


def one_run(machine, seed, number):
    """(kind, victim, fault, counts, what is wrong: None, or texts)"""
    chance = random.Random(f"{seed}/{number}")
    kind = chance.choice(KINDS)
    has_run = kind.startswith("run")
    victim, fault = (chance.choice(VICTIMS), chance.choice(FAULTS)) if has_run else (None, None)
    counts, left = collections.Counter(), None
    schedulers, threads = [], []
    account = machine.begin()
    if fault:
        inject(machine, fault, chance)
    if has_run:
        process, said = machine.start(3000, f"{seed}{number}", "300ms" if fault else "5s")
    if kind.endswith("schedulers"):
        schedulers, threads = schedule(machine, f"{seed}/{number}")
    if has_run:
        time.sleep(chance.uniform(0, 2.4))
        if chance.random() < 0.5:
            machine.wait_for_write(process, 0.001)
        counts["limit moved"] = machine.limit_w() != ORIGINAL_W
        strike(machine, process, victim, fault, chance, b"squad")
        left = find_left(machine, victim, fault)
    for thread in threads:
        thread.join()
    new = machine.read()
    if has_run:
        own = [run for run in new if run["gpu_model"] not in MODELS]
        check_job_run(machine, process, said, victim, fault, own)
        counts["surveys"] = sum(run["is_survey"] for run in own)
    check_schedulers(machine, schedulers, new, counts)
    silent_s = time.monotonic()
    run_at_once(machine, f"{seed}{number}")
    time.sleep(max(0, silent_s + LEASE_S + 0.02 - time.monotonic()))
    last = Scheduler(machine, random.Random(f"{seed}/{number}/last"))
    counts["taken back when all was done"] = take_back(machine, last)
    for scheduler in schedulers:  # who was late is heard all the same
        while scheduler.late:
            scheduler.report(scheduler.late.pop(), may_die=False)
            counts["late"] += 1
    machine.read()
    check_schedulers(machine, [*schedulers, last], [], counts)
    account.check_shown(json.loads(machine.job("show", machine.name, "--json")))
    for scheduler in schedulers:
        counts.update(scheduler.counts)
    wrong = ([left] if left else []) + account.wrong
    account.wrong = []
    return kind, victim, fault or "none", counts, wrong or None


def main():
    args = parse_args(__doc__)
    kinds, sums, bad = collections.Counter(), collections.Counter(), 0
    machines = []

    def make_machine(build):
        machines.append(JobMachine(build))
        return machines[-1]

    for kind, victim, fault, counts, wrong in each_run(args, make_machine, one_run):
        kinds[kind if victim is None else f"{kind}: {victim}, fault {fault}"] += 1
        sums.update(counts)
        bad += wrong is not None
    for name, count in sorted(kinds.items()):
        print(f"{count:6} {name}")
    print()
    accounts = [account for machine in machines for account in machine.accounts]
    states = collections.Counter(run["state"] for account in accounts for run in account.runs.values())
    sums["runs taken back and heard of again"] = sum(account.revived for account in accounts)
    for name, count in sorted((sums + collections.Counter({f"runs {state}": n for state, n in states.items()})).items()):
        print(f"{count:6} {name}")
    print(f"{sum(len(account.lines) for account in accounts):6} facts of "
          f"{sum(account.next_recurrence for account in accounts)} recurrences of {len(accounts)} jobs")
    print(f"seed {args.seed}: {args.runs} runs, {bad} lost, doubled or left something")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
