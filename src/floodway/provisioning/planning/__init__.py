"""Plans: for what is written on paper, and for flows whose costs are measured.

`described` is what there is to plan with, `questions` what can be asked of it; `answers` plans and
checks, `changes` asks what if. `provision` is all of that for a flow, what `floodway.Flow.plan`
returns, and `starting` starts flows as they were planned for a rate.
"""
