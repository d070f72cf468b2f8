//! `linerate ab`: two levels of one factor in turn, until every metric is decided or the budget is spent.

use linerate_lab::plan::{Decide, Plan, Repeats};
use linerate_lab::verdict_table::{Names, verdict_table};
use linerate_lab::verdicts;
use linerate_model::Record;
use linerate_model::exit::ExitCode;
use linerate_model::record::Outcome;
use linerate_model::units::parse_seconds_ns;

use crate::asked::Asked;
use crate::cli::AbArgs;
use crate::failure::Failure;
use crate::measure::{Manner, Work, measure};
use crate::{output, plan_text, request, verdict};

pub(crate) fn run(args: AbArgs) -> Result<ExitCode, Failure> {
    let failing = verdict::failing(&args.verdict)?;
    let metrics = verdict::metrics(&args.verdict)?;
    let rule = verdict::rule(&args.verdict.against)?;
    let budget_ns = parse_seconds_ns(&args.budget).map_err(|e| Failure::usage(format!("--budget: {e}")))?;
    let mut decide = Decide {
        confidence_percent: rule.confidence.share() * 100.0,
        margin: rule.margin,
        budget_ns,
        comparisons: 1,
    };
    let mut asked = request::asked_for_ab(&args)?;
    asked.repeats = Repeats::Decide(decide);
    let factor = only_factor(&asked)?;
    let judged_together = |plan: &mut Plan, shared_kernel: bool| {
        decide.comparisons = rows(plan, shared_kernel, metrics);
        plan.metrics = metrics.to_vec();
        plan.repeats = Repeats::Decide(decide);
    };
    if args.plan {
        output::print(&plan_text::text(&asked.check()?))?;
        return Ok(ExitCode::Good);
    }
    let manner = Manner { store: &args.store, keep_lab: args.nodes.keep_lab, quiet: args.quiet };
    let measured = measure(&mut Work::New(&asked, Box::new(judged_together)), &manner)?;
    let Repeats::Decide(decide) = measured.plan.repeats else {
        return Err(Failure::node("the plan of an A/B run has no budget"));
    };
    let outcome = measured.outcome?;
    let code = judge(&measured.records, &factor, &decide, &args, &failing)?;
    Ok(if outcome == Outcome::Interrupted { ExitCode::Interrupted } else { code })
}

/// The factor that is varied: one, with two levels.
fn only_factor(asked: &Asked) -> Result<String, Failure> {
    let plan = asked.check()?;
    let trials = &plan.combinations;
    let varied = verdicts::varied_among(trials);
    match varied.as_slice() {
        [factor] if verdicts::level_count(trials, factor) == 2 => Ok(factor.clone()),
        [] => Err(Failure::usage(
            "ab needs two levels of one factor, as in --set dut.tso=on,off or --send write,zerocopy",
        )),
        [factor] => Err(Failure::usage(format!("ab compares two levels; {factor} has more"))),
        _ => Err(Failure::usage(format!(
            "ab varies one factor; here are {}: run them with `linerate run` and compare with `--factor`",
            varied.join(", ")
        ))),
    }
}

/// How many rows the verdicts will have.
fn rows(plan: &Plan, shared_kernel: bool, metrics: &[String]) -> u32 {
    let transactional = plan.combinations.iter().any(|t| t.workload.kind().is_transactional());
    u32::try_from(verdicts::rows_of(plan.combinations.len(), transactional, shared_kernel, metrics))
        .unwrap_or(u32::MAX)
}

fn judge(
    records: &[Record],
    factor: &str,
    decide: &Decide,
    args: &AbArgs,
    failing: &[linerate_model::verdict::Verdict],
) -> Result<ExitCode, Failure> {
    let (matches, (base, new)) = verdicts::match_levels(records, factor, None).map_err(Failure::node)?;
    let blocks = matches.iter().map(|m| m.base.len()).min().unwrap_or_default();
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    let look = verdicts::look_rule(decide, blocks, true).map_err(Failure::usage)?;
    let Some(rule) = look else { return Err(Failure::node("no block of trials was finished")) };
    let names = Names { base: format!("{factor}={base}"), new: format!("{factor}={new}") };
    let table = verdict_table(&matches, &names, &rule, &args.verdict.metric).map_err(Failure::usage)?;
    let code = verdict::show(&table, &args.verdict, failing)?;
    if !args.verdict.json {
        output::print(&format!(
            "\n{blocks} blocks. Judged at {:.2} %, so that all looks at the run together keep to {} %.\n",
            rule.confidence.share() * 100.0,
            decide.confidence_percent
        ))?;
    }
    Ok(code)
}
