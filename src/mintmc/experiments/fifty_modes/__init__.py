"""The paper's 50-mode posterior: MINTEE from hot mini-batches down to T = 1."""
